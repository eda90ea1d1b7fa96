//! The matrix as one HTML file without scripts and other files.

use evictlab_judge::Verdict;
use evictlab_report::html_document;
use maud::{Markup, html};

use super::matrix::{Matrix, MutantRow, Outcome};

const STYLE: &str = "
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: normal; white-space: nowrap; padding: 0 .5rem; }
thead th.case { vertical-align: bottom; padding: 0; }
thead th.case span { writing-mode: vertical-rl; transform: rotate(180deg); }
td { border: 1px solid #ddd; width: 1.1rem; text-align: center; padding: 0; }
td.kill { background: #2da44e; color: #fff; }
td.other { background: #fff3c4; }
tr.survivor th { color: #b42318; font-weight: bold; }
";

/// Renders the matrix: a row per mutant, a column per case that was run.
pub fn page(matrix: &Matrix) -> String {
    let cases: Vec<&str> =
        matrix.cases.iter().filter(|case| case.ran).map(|case| case.case.as_str()).collect();
    let (alive, dead): (Vec<&MutantRow>, Vec<&MutantRow>) =
        matrix.mutants.iter().partition(|mutant| mutant.survives());
    let body = html! {
        h1 { "Mutants killed by cases" }
        p { (dead.len()) " of " (matrix.mutants.len()) " mutants killed, by " (cases.len()) " cases" }
        @if !matrix.full { p { "The cases of a mutant end with its first kill: empty cells were not run." } }
        table {
            thead {
                tr {
                    th { "mutant" } th { "kubelet" } th { "kills" }
                    @for case in &cases { th.case { span { (case) } } }
                }
            }
            tbody { @for mutant in alive.iter().chain(&dead) { (row(mutant, &cases)) } }
        }
        (remaining("Cases that kill no mutant", matrix.idle_cases().map(|case| case.case.as_str())))
        (remaining(
            "Cases with a needless reason (no-mutant)",
            matrix.needless_reasons().map(|case| case.case.as_str()),
        ))
        (remaining(
            "Cases left out, because they do not pass on a sound kubelet",
            matrix.left_out.iter().map(|left_out| left_out.case.as_str()),
        ))
    };
    html_document("Mutants killed by cases", &[STYLE], &body)
}

fn row(mutant: &MutantRow, cases: &[&str]) -> Markup {
    html! {
        tr class=[mutant.survives().then_some("survivor")] {
            th title=(mutant.about) { (mutant.defect) }
            th { (mutant.kubelet) }
            th { (mutant.killers().count()) }
            @for case in cases { (cell(mutant.outcomes.get(*case))) }
        }
    }
}

fn cell(outcome: Option<&Outcome>) -> Markup {
    let Some(Outcome { verdict, why }) = outcome else { return html! { td {} } };
    let title = format!("{verdict}: {why}");
    match verdict {
        Verdict::Failed => html! { td.kill title=(title) { "×" } },
        verdict if verdict.is_success() => html! { td title=(title) { "·" } },
        _ => html! { td.other title=(title) { "?" } },
    }
}

fn remaining<'a>(title: &str, cases: impl Iterator<Item = &'a str>) -> Markup {
    let cases: Vec<&str> = cases.collect();
    html! {
        @if !cases.is_empty() {
            h2 { (title) }
            ul { @for case in cases { li { (case) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::matrix::tests::matrix;

    #[test]
    fn page_shows_survivors_first_and_needs_no_other_file() {
        let page = page(&matrix());
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing: {page}"));
        assert!(place(">alive<") < place(">killed<"));
        assert!(page.contains("title=\"failed: why\"") && page.contains("title=\"inconclusive: why\""));
        assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="));
    }
}
