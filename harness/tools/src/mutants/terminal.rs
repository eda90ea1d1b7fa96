//! The matrix and the list of defects as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use evictlab_embedded::Defect;
use schemars::JsonSchema;
use serde::Serialize;

use super::matrix::{Matrix, MutantRow};

/// Number of cases that are named per mutant.
const NAMED: usize = 3;

/// A defect, as `evictlab mutants list --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DefectInfo {
    /// Name of the defect.
    defect: String,
    /// Part of the kubelet that the defect is in.
    area: String,
    /// Description of the defect in one sentence.
    about: String,
}

impl From<&Defect> for DefectInfo {
    fn from(defect: &Defect) -> Self {
        Self { defect: defect.to_string(), area: defect.area().to_string(), about: defect.about().to_owned() }
    }
}

/// Returns the defects with their areas and descriptions, one per line.
pub fn list(defects: &[Defect]) -> String {
    let width = defects.iter().map(|defect| defect.to_string().len()).max().unwrap_or(0);
    let line = |defect: &Defect| {
        let since = defect.since().map_or_else(String::new, |minor| format!(" (1.{minor} and newer)"));
        let except =
            defect.except().map_or_else(String::new, |(from, to)| format!(" (not 1.{from} to 1.{to})"));
        format!("{defect:width$}  {:11}  {}{since}{except}\n", defect.area(), defect.about())
    };
    defects.iter().map(line).collect()
}

/// Returns the matrix as text: survivors first, then the other mutants with their kills, then the
/// cases without kills.
pub fn summary(matrix: &Matrix) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(matrix, &mut text);
    text
}

fn write(matrix: &Matrix, text: &mut String) -> std::fmt::Result {
    let survivors: Vec<&MutantRow> = matrix.survivors().collect();
    for (reason, cases) in left_out_by_reason(matrix) {
        writeln!(text, "left out, {reason}: {}", cases.join(", "))?;
    }
    let width = matrix.mutants.iter().map(|mutant| mutant.defect.len()).max().unwrap_or_default();
    if !survivors.is_empty() {
        writeln!(text, "\nsurvivors")?;
        for mutant in &survivors {
            writeln!(text, "  {:width$} {:10} {}", mutant.defect, mutant.kubelet, mutant.about)?;
        }
    }
    writeln!(text, "\n{:width$} {:10} {:>5}  by", "mutant", "kubelet", "kills")?;
    for mutant in matrix.mutants.iter().filter(|mutant| !mutant.survives()) {
        let killers: Vec<&str> = mutant.killers().collect();
        let mut names = killers.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if killers.len() > NAMED {
            names += ", …";
        }
        writeln!(text, "{:width$} {:10} {:>5}  {names}", mutant.defect, mutant.kubelet, killers.len())?;
    }
    let sections: [(&str, Vec<&str>); 2] = [
        ("cases that kill no mutant", matrix.idle_cases().map(|case| case.case.as_str()).collect()),
        (
            "cases that kill a mutant although they state why none can fail them (no-mutant)",
            matrix.needless_reasons().map(|case| case.case.as_str()).collect(),
        ),
    ];
    for (title, cases) in sections.into_iter().filter(|(_, cases)| !cases.is_empty()) {
        writeln!(text, "\n{title}")?;
        for case in cases {
            writeln!(text, "  {case}")?;
        }
    }
    let killed = matrix.mutants.len() - survivors.len();
    let ran = matrix.cases.iter().filter(|case| case.ran).count();
    let with_kills = matrix.cases.iter().filter(|case| case.kills > 0).count();
    write!(
        text,
        "\n{killed} of {} mutants killed; {with_kills} of {ran} cases kill a mutant",
        matrix.mutants.len()
    )
}

/// Groups the cases that were left out by verdict and kubelet.
fn left_out_by_reason(matrix: &Matrix) -> BTreeMap<String, Vec<&str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for left_out in &matrix.left_out {
        let reason = format!("{} on {}", left_out.outcome.verdict, left_out.kubelet);
        groups.entry(reason).or_default().push(&left_out.case);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::matrix::tests::matrix;

    #[test]
    fn survivors_come_first() {
        insta::assert_snapshot!(summary(&matrix()));
    }

    #[test]
    fn lists_defects_with_their_versions() {
        insta::assert_snapshot!(list(&[Defect::MessageOmitsSidecars, Defect::RankEvictsTwo]));
    }
}
