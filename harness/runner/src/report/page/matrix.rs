//! Case by kubelet, and what of it is shown.

use maud::{Markup, html};

use super::verdict;
use crate::judge::Verdict;
use crate::report::Planned;
use crate::report::account::needs_a_person;
use crate::report::ledger::Ledger;

/// The table with its filters. They are styles: a page without scripts is filtered as well.
pub(super) fn matrix(ledger: &Ledger) -> Markup {
    let Some(run) = &ledger.run else { return html! {} };
    let mut suites: Vec<&str> = run.cases.iter().map(|case| case.suite.as_str()).collect();
    suites.dedup();
    html! {
        form.filters {
            @for (name, label) in [("all", "all"), ("person", "needs a person"), ("bugs", "known bugs")] {
                label { input type="radio" name="show" id={ "show-" (name) } checked[name == "all"]; (label) }
            }
        }
        div.wide { table.matrix {
            thead { tr {
                th scope="col" { "case" }
                @for kubelet in &run.kubelets { th scope="col" { (kubelet) } }
            } }
            @for suite in suites {
                tbody {
                    tr.suite { th colspan=(run.kubelets.len() + 1) scope="colgroup" { (suite) } }
                    @for case in run.cases.iter().filter(|case| case.suite == suite) {
                        tr class=(kinds(ledger, case, &run.kubelets)) {
                            th scope="row" title=(case.about) { (case.case) }
                            @for kubelet in &run.kubelets {
                                td {
                                    @for ended in ledger.attempts(case, kubelet) { (verdict(ended)) }
                                    @if ledger.attempts(case, kubelet).next().is_none() { span.skipped { "not run" } }
                                }
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// What the filters know a row by.
fn kinds(ledger: &Ledger, case: &Planned, kubelets: &[String]) -> String {
    let of_case = || kubelets.iter().flat_map(|kubelet| ledger.attempts(case, kubelet));
    let any = |is: &dyn Fn(Verdict) -> bool| of_case().any(|ended| is(ended.judgement.verdict));
    let person = any(&needs_a_person) || of_case().next().is_none();
    let bug = any(&|verdict| matches!(verdict, Verdict::Reproduced | Verdict::Fixed));
    let kinds = [("person", person), ("bugs", bug)];
    kinds.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect::<Vec<_>>().join(" ")
}
