//! A history as an HTML page.

use maud::{Markup, html};

use super::markdown::{describe_change, median_durations, pass_rate};
use super::series::{History, PastResult, Series};
use crate::page::{html_document, search_field};
use crate::symbols::{legend, symbol};

const HISTORY_STYLE: &str = include_str!("style.css");

/// Renders a history as a self-contained HTML page.
pub fn history_page(history: &History) -> String {
    let outcomes = || history.series.iter().flat_map(|series| &series.outcomes);
    let legend = legend(|found| outcomes().any(|outcome| symbol(outcome.verdict) == found)).replace('`', "");
    let body = html! {
        header {
            h1 { "History of " (history.runs) " runs" }
            p { "The newest " (history.recent) " of each case compared with those before. Each symbol is an execution, oldest first: " (legend) "." }
        }
        main #main {
            (search_field("cases and changes"))
            div.wide role="region" aria-label="History" tabindex="0" { table {
                thead {
                    tr { @for name in ["case", "kubelet", "passed", "runs", "median", "change"] { th scope="col" { (name) } } }
                }
                tbody { @for series in &history.series { (row(history, series)) } }
            } }
        }
    };
    html_document("evictlab history", &[HISTORY_STYLE], &body)
}

fn row(history: &History, series: &Series) -> Markup {
    html! {
        tr.item {
            // A long name is broken after the suite.
            th scope="row" {
                @for part in series.case.split_inclusive('/') { (part) wbr; }
            }
            td { (history.kubelet(series)) }
            td { (pass_rate(series)) }
            td.runs { @for outcome in &series.outcomes { (square(outcome)) } }
            td { (median_durations(series)) }
            td { (describe_change(series.change)) }
        }
    }
}

fn square(outcome: &PastResult) -> Markup {
    let verdict = outcome.verdict.to_string();
    let at = outcome.at.strftime("%Y-%m-%d %H:%M");
    let title = format!("{verdict}: run {}, {at}, {}", outcome.run, outcome.kubelet);
    html! { span class=(verdict) title=(title) { (symbol(outcome.verdict)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BackendName;
    use crate::history::SeriesChange;
    use evictlab_judge::Verdict;

    #[test]
    fn page_shows_every_execution_and_runs_nothing() {
        let outcome = |verdict| PastResult {
            run: "<script>".to_owned(),
            at: "2026-11-21T09:30:12Z".parse().unwrap(),
            kubelet: "v1.32.13".to_owned(),
            verdict,
            seconds: 8.2,
        };
        let series = Series {
            case: "message/a".to_owned(),
            kubelet: "v1.32".to_owned(),
            backend: BackendName::Kind,
            outcomes: vec![outcome(Verdict::Passed), outcome(Verdict::Failed)],
            pass_rate: Some(0.5),
            seconds: [None, Some(8.2)],
            change: SeriesChange::NewlyFailing(1),
        };
        let page = history_page(&History { runs: 2, recent: 1, series: vec![series] });
        assert!(page.contains("<span class=\"failed\"") && page.contains("newly failing, 1 time"), "{page}");
        assert!(
            page.contains("oldest first: . passed, F failed.") && page.contains("message/<wbr>a"),
            "{page}"
        );
        assert_eq!((page.matches("<script").count(), page.matches("&lt;script&gt;").count()), (1, 2));
    }
}
