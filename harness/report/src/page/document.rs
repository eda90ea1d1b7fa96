//! A run as one self-contained HTML file, beside the files of its evidence.

use maud::{Markup, html};

use super::evidence_links::EvidenceBase;
use super::overview::overview;
use super::shell::html_document;
use super::verdict::rank;
use super::{case_section, matrix};
use crate::markdown::{model_notice, totals};
use crate::recorded::{RecordedRun, RecordedRunError};
use crate::run_state::{Creation, EndedCase, RunStart, RunState};
use crate::timeline;
use evictlab_judge::Verdict;

/// Size of the page, in bytes, up to which cases get their details. Beyond it, a case has its
/// reason, and links to the files: the evidence of all cases on all kubelets is 200 MB.
const MAX_PAGE: usize = 3_900_000;

/// Renders the HTML page of a run, with links to the files of its evidence.
///
/// # Errors
/// The evidence of a case cannot be read.
pub fn page(run: &RecordedRun, base: &EvidenceBase) -> Result<String, RecordedRunError> {
    let state = run.state();
    let (overview, matrix) = (overview(state), matrix::matrix(state));
    let sections = case_sections(run, base, MAX_PAGE.saturating_sub(overview.0.len() + matrix.0.len()))?;
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
        main #main {
            (overview)
            h2 { "Verdicts" }
            (matrix)
            h2 { "Cases" }
            @for section in &sections { (section) }
        }
    };
    Ok(html_document(&title, &[timeline::STYLE], &body))
}

/// Renders the cases, those in most need of attention first. In this order they get their details,
/// until all sections have `max_size` bytes.
fn case_sections(
    run: &RecordedRun,
    base: &EvidenceBase,
    max_size: usize,
) -> Result<Vec<Markup>, RecordedRunError> {
    let state = run.state();
    let shown = state.ended.iter().filter(|ended| ended.result.verdict != Verdict::Skipped);
    let mut shown: Vec<&EndedCase> = shown.collect();
    shown.sort_by_cached_key(|ended| {
        let id = &ended.id;
        let kubelet = state.run.iter().flat_map(|run| &run.kubelets).position(|label| *label == id.kubelet);
        (rank(ended.result.verdict), id.suite_and_case(), kubelet, id.attempt)
    });
    let brief = |ended: &&EndedCase| case_section::brief_case_section(state, ended, base);
    let mut sections: Vec<Markup> = shown.iter().map(brief).collect();
    let mut size: usize = sections.iter().map(|section| section.0.len()).sum();
    for (ended, section) in shown.into_iter().zip(&mut sections) {
        let detailed = case_section::case_section(state, ended, run.evidence(ended)?.as_ref(), base);
        size = size - section.0.len() + detailed.0.len();
        if size > max_size {
            break;
        }
        *section = detailed;
    }
    Ok(sections)
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
    use crate::page::SCRIPT;
    use crate::{EvidenceWriter, JsonLines, RunDir, fixtures};

    fn render_first(events: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let all = fixtures::full_run();
        let first = &all[..events.min(all.len())];
        fixtures::deliver(&mut JsonLines::create(&run_dir).unwrap(), first);
        fixtures::deliver(&mut EvidenceWriter::new(run_dir), first);
        page(&RecordedRun::read(dir.path()).unwrap(), &EvidenceBase::none()).unwrap()
    }

    #[test]
    fn every_verdict_links_to_its_case() {
        let page = render_first(usize::MAX);
        let links: Vec<&str> =
            page.split("href=\"#").skip(1).filter_map(|part| part.split('"').next()).collect();
        // The first link skips to the content, and four cases need attention.
        assert_eq!(links.len(), 1 + 4 + 9, "{links:?}");
        for link in links {
            assert_eq!(page.matches(&format!("id=\"{link}\"")).count(), 1, "{link}");
        }
        assert!(page.contains("<svg") && page.contains("the message does not name el1"));
    }

    #[test]
    fn page_is_self_contained() {
        let page = render_first(usize::MAX).replacen(&format!("<script>{SCRIPT}</script>"), "", 1);
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

    #[test]
    fn cases_in_need_of_attention_get_their_details_first() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        fixtures::deliver(&mut JsonLines::create(&run_dir).unwrap(), &fixtures::full_run());
        fixtures::deliver(&mut EvidenceWriter::new(run_dir), &fixtures::full_run());
        let run = RecordedRun::read(dir.path()).unwrap();
        let with_details = |max: usize| -> Vec<String> {
            let sections = case_sections(&run, &EvidenceBase::none(), max).unwrap();
            let detailed = sections.iter().filter(|section| section.0.contains("Pods as created"));
            detailed
                .filter_map(|section| Some(section.0.split("id=\"").nth(1)?.split('"').next()?.to_owned()))
                .collect()
        };
        let all = with_details(usize::MAX);
        assert_eq!(all.len(), 9, "{all:?}");
        let brief = case_sections(&run, &EvidenceBase::none(), 0).unwrap();
        let brief: usize = brief.iter().map(|section| section.0.len()).sum();
        let sections = case_sections(&run, &EvidenceBase::none(), usize::MAX).unwrap();
        let largest = sections.iter().map(|section| section.0.len()).max().unwrap();
        for room in 2..4 {
            let sections = case_sections(&run, &EvidenceBase::none(), brief + room * largest).unwrap();
            assert!(sections.iter().map(|section| section.0.len()).sum::<usize>() <= brief + room * largest);
            let few = with_details(brief + room * largest);
            assert_eq!(few[0], "message-requests-decide-v1.32.13-1", "{few:?}");
        }
        assert!(with_details(brief).is_empty(), "the short sections have their place first");
    }
}
