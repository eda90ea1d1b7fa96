//! The pages of the cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::sync::{Arc, LazyLock};

use evictlab_case::{KnownBug, KubeletRequirement, LoadedCase};
use evictlab_judge::Verdict;
use evictlab_report::text::{code_block, count_noun, markdown_code, markdown_table, marked_ranges};
use regex::Regex;
use serde::Deserialize;

/// Verdicts of each case (`suite/case`) by minor version of the kubelet, such as `v1.32`.
pub type Verdicts = BTreeMap<String, BTreeMap<String, VersionVerdict>>;

/// Verdict of a case on one version of the kubelet. Files state one verdict, such as `"passed"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Verdict")]
pub enum VersionVerdict {
    /// Verdict of all executions.
    Same(Verdict),
    /// Number of executions with each verdict.
    Counts(BTreeMap<Verdict, u32>),
}

impl From<Verdict> for VersionVerdict {
    fn from(verdict: Verdict) -> Self {
        Self::Same(verdict)
    }
}

impl fmt::Display for VersionVerdict {
    /// Writes `passed`, or `passed 4, failed 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(verdict) => write!(f, "{verdict}"),
            Self::Counts(counts) => {
                let counts: Vec<String> =
                    counts.iter().map(|(verdict, count)| format!("{verdict} {count}")).collect();
                f.write_str(&counts.join(", "))
            }
        }
    }
}

/// A path of the Kubernetes source.
static SOURCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:pkg|cmd|plugin|staging|test)/[\w./-]+\.go\b").expect("the pattern is valid")
});

/// The page of a case.
pub(super) fn case_page(loaded: &LoadedCase, verdicts: &[(String, Verdicts)], has_timeline: bool) -> String {
    let (case, id) = (&loaded.case, loaded.id());
    let mut text =
        format!("# {id}\n\n{}\n\n{}\n", case.about, code_block("sh", &format!("evictlab run {}", case.name)));
    if let Some(advice) = &case.when_it_fails {
        let _ = writeln!(text, "\n**When it fails.** {}", with_sources(advice));
    }
    let issues = case.upstream.iter().map(|upstream| format!("[{upstream}]({})", upstream.link()));
    let mut rows = vec![
        ["kubelets".to_owned(), kubelets(&case.kubelet)],
        ["labels".to_owned(), case.labels.join(", ")],
        ["upstream".to_owned(), issues.collect::<Vec<_>>().join(", ")],
        ["deadline".to_owned(), format!("{} s", case.deadline().as_secs())],
    ];
    rows.retain(|[_, value]| !value.is_empty());
    let _ = write!(text, "\n{}", markdown_table(&["", ""], rows));
    if !case.known_bugs.is_empty() {
        text.push_str("\n## Known bugs\n\n");
        case.known_bugs.iter().for_each(|bug| text.push_str(&known_bug(bug)));
    }
    text.push_str(&verdict_table(&id, verdicts));
    if has_timeline {
        let name = &case.name;
        let _ = writeln!(text, "\n## Timeline\n\n![Timeline of {id} on the model]({name}.svg)");
    }
    let _ = writeln!(text, "\n## Case file\n\n{}", code_block("yaml", loaded.text()));
    text
}

fn known_bug(bug: &KnownBug) -> String {
    let upstream = bug.upstream.as_ref().map(|upstream| format!(" ([{upstream}]({}))", upstream.link()));
    let about = bug.about.as_deref().unwrap_or("The behaviour differs.");
    format!("- Kubelets {}: {about}{}\n", kubelets(&bug.kubelet), upstream.unwrap_or_default())
}

/// The versions of kubelets that a case or a known bug states: `any`, or a range as code.
fn kubelets(range: &KubeletRequirement) -> String {
    if range.is_any() { range.to_string() } else { markdown_code(&range.to_string()) }
}

/// Links files of the Kubernetes source.
fn with_sources(text: &str) -> String {
    let link = "[`$0`](https://github.com/kubernetes/kubernetes/blob/master/$0)";
    SOURCE.replace_all(text, link).into_owned()
}

/// The minor versions of all verdicts, oldest first.
fn minors<'a>(verdicts: impl Iterator<Item = &'a Verdicts>) -> Vec<&'a str> {
    let number = |minor: &str| minor.rsplit('.').next().and_then(|text| text.parse::<u32>().ok());
    let all: BTreeSet<&str> =
        verdicts.flat_map(|all| all.values()).flat_map(|one| one.keys()).map(String::as_str).collect();
    let mut all: Vec<&str> = all.into_iter().collect();
    all.sort_by_key(|minor| number(minor));
    all
}

/// The verdicts of a case: a row for each source of verdicts, a column for each minor version.
fn verdict_table(id: &str, verdicts: &[(String, Verdicts)]) -> String {
    let minors = minors(verdicts.iter().map(|(_, verdicts)| verdicts));
    let rows = verdicts.iter().filter_map(|(name, verdicts)| {
        let of_case = verdicts.get(id)?;
        let cells =
            minors.iter().map(|minor| of_case.get(*minor).map(ToString::to_string).unwrap_or_default());
        Some([name.clone()].into_iter().chain(cells).collect::<Vec<String>>())
    });
    let header: Vec<&str> = [""].into_iter().chain(minors.iter().copied()).collect();
    format!("\n## Verdicts\n\n{}", markdown_table(&header, rows))
}

/// The list of all cases.
pub(super) fn catalogue_page(cases: &[Arc<LoadedCase>], verdicts: &[(String, Verdicts)]) -> String {
    let mut text = format!(
        "# Catalogue\n\n{}. Each states one behaviour of the kubelet; `evictlab run NAME` runs it.\n",
        count_noun(cases.len(), "case")
    );
    for suite in cases.chunk_by(|one, next| one.suite == next.suite) {
        let rows = suite.iter().map(|loaded| {
            let (case, id) = (&loaded.case, loaded.id());
            let bugs = verdicts.first().map(|(_, verdicts)| reproduced_on(&id, verdicts));
            [format!("[{}]({id}.md)", case.name), case.about.clone(), bugs.unwrap_or_default()]
        });
        let table = markdown_table(&["case", "states", "known bugs on"], rows);
        let _ = write!(text, "\n## {}\n\n{table}", suite[0].suite);
    }
    text
}

/// The minor versions on which a known bug of a case shows, as ranges; a range leaves out versions
/// on which the case was skipped.
fn reproduced_on(id: &str, verdicts: &Verdicts) -> String {
    let Some(of_case) = verdicts.get(id) else { return String::new() };
    let executed = minors(std::iter::once(verdicts)).into_iter().filter_map(|minor| {
        let verdict =
            of_case.get(minor).filter(|verdict| **verdict != VersionVerdict::Same(Verdict::Skipped))?;
        Some((minor.to_owned(), *verdict == VersionVerdict::Same(Verdict::Reproduced)))
    });
    marked_ranges(executed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_with_a_known_bug_are_ranges() {
        use Verdict::{Fixed, Passed, Reproduced, Skipped};
        let reproduced = ["v1.27", "v1.29", "v1.30"].map(|minor| (minor, Reproduced));
        for (others, expected) in [
            (vec![("v1.28", Reproduced)], "v1.27 to v1.30"),
            (vec![("v1.28", Passed)], "v1.27, v1.29, v1.30"),
            (vec![("v1.28", Skipped), ("v1.31", Fixed)], "v1.27 to v1.30"),
        ] {
            let of_case = reproduced.into_iter().chain(others);
            let of_case =
                of_case.map(|(minor, verdict)| (minor.to_owned(), VersionVerdict::Same(verdict))).collect();
            let verdicts = Verdicts::from([("message/a".to_owned(), of_case)]);
            assert_eq!(reproduced_on("message/a", &verdicts), expected);
            assert_eq!(reproduced_on("message/b", &verdicts), "");
        }
    }
}
