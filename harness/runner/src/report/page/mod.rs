//! A run as one HTML file that needs nothing else: no script, no font, no other file.

mod cell;
mod markdown;
mod matrix;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::account::{duration, needs_a_person, of_model, totals};
use super::ledger::{Creation, Ended, Ledger, Run};
use super::past::{PastError, PastRun};
use super::timeline;
use crate::judge::Verdict;

const STYLE: &str = include_str!("style.css");

/// The page of a run.
///
/// # Errors
/// Evidence that cannot be read.
pub fn page(run: &PastRun) -> Result<String, PastError> {
    let ledger = &run.ledger;
    let cells = ledger.ended.iter().filter(|ended| ended.judgement.verdict != Verdict::Skipped);
    let cells: Vec<Markup> = cells
        .map(|ended| Ok(cell::cell(ledger, ended, run.evidence(ended)?.as_ref())))
        .collect::<Result<_, PastError>>()?;
    let title =
        ledger.run.as_ref().map_or_else(|| "evictlab".to_owned(), |run| format!("evictlab run {}", run.id));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(timeline::STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    @if let Some(run) = &ledger.run { (about(run, ledger)) }
                    p.totals { (totals(ledger)) }
                    @if ledger.over.is_none() {
                        p.warning { "This run did not come to its end, or goes on: what follows is what was written so far." }
                    }
                }
                main {
                    (matrix::matrix(ledger))
                    @for cell in &cells { (cell) }
                }
            }
        }
    };
    Ok(page.into_string())
}

/// What was run, when, and on what.
fn about(run: &Run, ledger: &Ledger) -> Markup {
    html! {
        dl {
            dt { "begun" } dd { (run.at.strftime("%Y-%m-%d %H:%M:%S UTC")) }
            dt { "evictlab" } dd { (run.evictlab) }
            dt { "kubelets" } dd { (run.kubelets.join(", ")) }
            dt { "backend" } dd {
                (run.backend)
                @if let Some(model) = &run.model { ", a model (" (of_model(model)) "): no kubelet said this" }
            }
            @for cluster in &ledger.clusters {
                @if let Some(Creation::Failed { error, .. }) = &cluster.creation {
                    dt { "cluster " (cluster.name) } dd.failed { "could not be made: " (error) }
                }
            }
        }
    }
}

/// What the styles call a verdict.
fn class(ended: &Ended) -> String {
    let person = if needs_a_person(ended.judgement.verdict) { " person" } else { "" };
    format!("{}{person}", ended.judgement.verdict)
}

/// Where on the page a case is.
fn anchor(ended: &Ended) -> String {
    let id = &ended.id;
    let text = format!("{}-{}-{}-{}", id.suite, id.case, id.kubelet, id.attempt);
    text.chars().map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' }).collect()
}

/// A verdict in the matrix.
fn verdict(ended: &Ended) -> Markup {
    let seconds = duration(ended.seconds);
    match ended.judgement.verdict {
        Verdict::Skipped => html! { span.skipped title=(ended.judgement.why) { "skipped" } },
        verdict => html! {
            a class=(class(ended)) href={ "#" (anchor(ended)) } title=(ended.judgement.why) {
                (verdict.to_string()) " " span.time { (seconds) }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Evidence, JsonLines, Report, RunDir, story};

    fn of_story(events: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut reports: [Box<dyn Report>; 2] =
            [Box::new(JsonLines::create(&run_dir).unwrap()), Box::new(Evidence::new(run_dir))];
        for event in story::whole().iter().take(events) {
            reports.iter_mut().for_each(|report| report.take(event).unwrap());
        }
        page(&PastRun::read(dir.path()).unwrap()).unwrap()
    }

    #[test]
    fn every_verdict_leads_to_its_case() {
        let page = of_story(usize::MAX);
        let links: Vec<&str> =
            page.split("href=\"#").skip(1).filter_map(|part| part.split('"').next()).collect();
        assert_eq!(links.len(), 9, "{links:?}");
        for link in links {
            assert_eq!(page.matches(&format!("id=\"{link}\"")).count(), 1, "{link}");
        }
        assert!(page.contains("<svg") && page.contains("the message does not name el1"));
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = of_story(usize::MAX);
        for outside in ["<script", "<link", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_run_that_was_cut_off_says_so() {
        const CUT: &str = "did not come to its end";
        assert!(of_story(15).contains(CUT));
        assert!(!of_story(usize::MAX).contains(CUT));
    }
}
