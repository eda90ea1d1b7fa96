//! The table of verdicts, with filters.

use maud::{Markup, html};

use super::shell::search_field;
use super::verdict::verdict;
use crate::run_event::CaseInfo;
use crate::run_state::RunState;
use evictlab_judge::Verdict;

/// Renders the table and its filters. The filters are CSS only, without scripts.
pub(super) fn matrix(state: &RunState) -> Markup {
    let Some(run) = &state.run else { return html! {} };
    let mut suites: Vec<&str> = run.cases.iter().map(|case| case.suite.as_str()).collect();
    suites.dedup();
    html! {
        (search_field("cases, kubelets and verdicts"))
        form.filters {
            @for (name, label) in [("all", "all"), ("person", "needs attention"), ("bugs", "known bugs")] {
                label { input type="radio" name="show" id={ "show-" (name) } checked[name == "all"]; (label) }
            }
        }
        div.wide role="region" aria-label="Verdicts" tabindex="0" { table.matrix {
            caption { "Verdicts of cases by kubelet" }
            thead { tr {
                th scope="col" { "case" }
                @for kubelet in &run.kubelets { th scope="col" { (kubelet) } }
            } }
            @for suite in suites {
                tbody {
                    tr.suite { th colspan=(run.kubelets.len() + 1) scope="colgroup" { (suite) } }
                    @for case in run.cases.iter().filter(|case| case.suite == suite) {
                        tr class={ "item " (row_classes(state, case, &run.kubelets)) } data-suite={ (suite) "/" } {
                            th scope="row" title=(case.about) { (case.case) }
                            @for kubelet in &run.kubelets {
                                td {
                                    @for ended in state.attempts(case, kubelet) { (verdict(ended)) }
                                    @if state.attempts(case, kubelet).next().is_none() { span.skipped { "not run" } }
                                }
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// CSS classes by which the filters select a row.
fn row_classes(state: &RunState, case: &CaseInfo, kubelets: &[String]) -> String {
    let of_case = || kubelets.iter().flat_map(|kubelet| state.attempts(case, kubelet));
    let any = |is: &dyn Fn(Verdict) -> bool| of_case().any(|ended| is(ended.result.verdict));
    let person = any(&Verdict::needs_attention) || of_case().next().is_none();
    let bug = any(&|verdict| matches!(verdict, Verdict::Reproduced | Verdict::Fixed));
    let kinds = [("person", person), ("bugs", bug)];
    kinds.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect::<Vec<_>>().join(" ")
}
