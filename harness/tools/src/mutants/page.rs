//! The matrix as one HTML file.

use evictlab_report::text::count_noun;
use evictlab_report::{html_document, search_field};
use maud::{Markup, html};

use super::matrix::{Matrix, MutantCaseOutcome, MutantRow};

const STYLE: &str = "
body { max-width: none; }
thead th { vertical-align: bottom; }
thead th.case { padding: .2rem 0; }
thead th.case span { writing-mode: vertical-rl; transform: rotate(180deg); font-weight: normal; }
tbody th { font-weight: normal; }
tbody td { width: 1.1rem; text-align: center; padding: 0; }
td.kill { background: var(--good); color: var(--ground); }
td.other { background: var(--bug); color: var(--ground); }
tr.survivor th { color: var(--bad); font-weight: bold; }
";

/// Renders the matrix: a row per mutant, a column per case that was run.
pub fn page(matrix: &Matrix) -> String {
    let cases: Vec<&str> =
        matrix.cases.iter().filter(|case| case.ran).map(|case| case.case.as_str()).collect();
    let (alive, dead): (Vec<&MutantRow>, Vec<&MutantRow>) =
        matrix.mutants.iter().partition(|mutant| mutant.survives());
    let body = html! {
        header { h1 { "Mutants killed by cases" } }
        main #main {
        p { (dead.len()) " of " (matrix.mutants.len()) " mutants killed, by " (count_noun(cases.len(), "case")) }
        @if !matrix.full { p { "The cases of a mutant end with its first kill: empty cells were not run." } }
        p { "× killed the mutant, · passed, ? neither" }
        (search_field("mutants"))
        div.wide role="region" aria-label="Mutants" tabindex="0" { table {
            thead {
                tr {
                    th scope="col" { "mutant" } th scope="col" { "kubelet" } th scope="col" { "kills" }
                    @for case in &cases { th.case scope="col" { span { (case) } } }
                }
            }
            tbody { @for mutant in alive.iter().chain(&dead) { (row(mutant, &cases)) } }
        } }
        (case_list("Cases that kill no mutant", matrix.idle_cases().map(|case| case.case.as_str())))
        (case_list(
            "Cases with a needless reason (no-mutant)",
            matrix.needless_reasons().map(|case| case.case.as_str()),
        ))
        (case_list(
            "Cases left out, because they do not pass on a sound kubelet",
            matrix.left_out.iter().map(|left_out| left_out.case.as_str()),
        ))
        }
    };
    html_document("Mutants killed by cases", &[STYLE], &body)
}

fn row(mutant: &MutantRow, cases: &[&str]) -> Markup {
    html! {
        tr.item.survivor[mutant.survives()] {
            th scope="row" title=(mutant.about) { (mutant.defect) }
            td { (mutant.kubelet) }
            td { (mutant.killers().count()) }
            @for case in cases { (cell(mutant.outcomes.get(*case))) }
        }
    }
}

fn cell(outcome: Option<&MutantCaseOutcome>) -> Markup {
    let Some(outcome) = outcome else { return html! { td {} } };
    let title = format!("{}: {}", outcome.verdict, outcome.why);
    match () {
        () if outcome.is_kill() => html! { td.kill title=(title) { "×" } },
        () if outcome.is_sound() => html! { td title=(title) { "·" } },
        () => html! { td.other title=(title) { "?" } },
    }
}

fn case_list<'a>(title: &str, cases: impl Iterator<Item = &'a str>) -> Markup {
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
        assert!(page.contains(" mutants killed, by 3 cases<"), "{page}");
        assert!(page.contains("title=\"failed: why\"") && page.contains("title=\"inconclusive: why\""));
        assert!(
            !page.contains("src=") && !page.contains("href=\"http") && page.matches("<script").count() == 1
        );
    }
}
