//! A run as one self-contained HTML file: no scripts, fonts, or other files.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{cell, matrix};
use crate::markdown::{model_notice, totals};
use crate::recorded::{RecordedRun, RecordedRunError};
use crate::run_state::{Creation, RunStart, RunState};
use crate::timeline;
use evictlab_judge::Verdict;

/// No scripts and nothing from elsewhere, whatever the evidence contains.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
pub(crate) const STYLE: &str = include_str!("style.css");

/// Renders the HTML page of a run.
///
/// # Errors
/// The evidence of a case cannot be read.
pub fn page(run: &RecordedRun) -> Result<String, RecordedRunError> {
    let state = run.state();
    let cells = state.ended.iter().filter(|ended| ended.judgement.verdict != Verdict::Skipped);
    let cells: Vec<Markup> = cells
        .map(|ended| Ok(cell::cell(state, ended, run.evidence(ended)?.as_ref())))
        .collect::<Result<_, RecordedRunError>>()?;
    let title =
        state.run.as_ref().map_or_else(|| "evictlab".to_owned(), |run| format!("evictlab run {}", run.id));
    let body = html! {
        header {
            h1 { (title) }
            @if let Some(run) = &state.run { (run_facts(run, state)) }
            p.totals { (totals(state)) }
            @if state.end.is_none() {
                p.warning { "This run is incomplete: it was killed, or is still running." }
            }
        }
        main {
            (matrix::matrix(state))
            @for cell in &cells { (cell) }
        }
    };
    Ok(html_document(&title, &[STYLE, timeline::STYLE], &body))
}

/// Renders a self-contained HTML document from its title, style sheets and body.
pub fn html_document(title: &str, styles: &[&str], body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_SECURITY_POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { @for style in styles { (PreEscaped(style)) } }
            }
            body { (body) }
        }
    };
    document.into_string()
}

/// Start time, versions, backend, and failed clusters.
fn run_facts(run: &RunStart, state: &RunState) -> Markup {
    html! {
        dl {
            dt { "started" } dd { (run.real_start.strftime("%Y-%m-%d %H:%M:%S UTC")) }
            dt { "evictlab" } dd { (run.evictlab) }
            dt { "kubelets" } dd { (run.kubelets.join(", ")) }
            dt { "backend" } dd {
                (run.backend)
                @if let Some(model) = &run.model { ", a model, not a real kubelet (" (model_notice(model)) ")" }
            }
            @for cluster in &state.clusters {
                @if let Some(Creation::Failed { error, .. }) = &cluster.creation {
                    dt { "cluster " (cluster.name) } dd.failed { "creation failed: " (error) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evidence, JsonLines, RunDir, fixtures};

    fn render_first(events: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let all = fixtures::full_run();
        let first = &all[..events.min(all.len())];
        fixtures::deliver(&mut JsonLines::create(&run_dir).unwrap(), first);
        fixtures::deliver(&mut Evidence::new(run_dir), first);
        page(&RecordedRun::read(dir.path()).unwrap()).unwrap()
    }

    #[test]
    fn every_verdict_links_to_its_case() {
        let page = render_first(usize::MAX);
        let links: Vec<&str> =
            page.split("href=\"#").skip(1).filter_map(|part| part.split('"').next()).collect();
        assert_eq!(links.len(), 9, "{links:?}");
        for link in links {
            assert_eq!(page.matches(&format!("id=\"{link}\"")).count(), 1, "{link}");
        }
        assert!(page.contains("<svg") && page.contains("the message does not name el1"));
    }

    #[test]
    fn page_is_self_contained() {
        let page = render_first(usize::MAX);
        for outside in ["<script", "<link", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none';"));
    }

    #[test]
    fn incomplete_run_has_a_warning() {
        const WARNING: &str = "This run is incomplete";
        assert!(render_first(15).contains(WARNING));
        assert!(!render_first(usize::MAX).contains(WARNING));
    }
}
