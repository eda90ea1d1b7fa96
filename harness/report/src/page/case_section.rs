//! The section of a case: timeline, details, checks, and evidence.

use maud::{Markup, html};
use serde_json::Value;

use super::evidence_links::EvidenceBase;
use super::rendered::render;
use super::verdict::{anchor, class};
use crate::markdown::write_case_details;
use crate::run_state::{EndedCase, RunState};
use crate::text::duration;
use crate::timeline::{Timeline, inline_svg};
use evictlab_evidence::{Observations, Recorded, RecordedEvent};
use evictlab_judge::Check;

/// Maximum number of log lines on the page.
const MAX_LOG_LINES: usize = 200;

/// Renders a case without its evidence: the reason for the verdict, and links.
pub(super) fn brief_case_section(state: &RunState, ended: &EndedCase, base: &EvidenceBase) -> Markup {
    article(
        ended,
        &html! {
            @if let Some(info) = state.case_info(&ended.id) { p.about { (info.about.trim_end()) } }
            p { (ended.result.why.trim_end()) }
            (files(ended, base))
        },
    )
}

/// Renders a case with its evidence.
pub(super) fn case_section(
    state: &RunState,
    ended: &EndedCase,
    evidence: Option<&Observations>,
    base: &EvidenceBase,
) -> Markup {
    let id = &ended.id;
    let info = state.case_info(id);
    let mut markdown = String::new();
    write_case_details(&mut markdown, info, ended);
    let (passed, failed): (Vec<&Check>, Vec<&Check>) =
        ended.result.checks.iter().partition(|check| check.holds);
    article(
        ended,
        &html! {
            @if let Some(info) = info { p.about { (info.about.trim_end()) } }
            @if let Some(timeline) = evidence.and_then(Timeline::from_observations) {
                div.wide role="region" aria-label="Timeline" tabindex="0" { (inline_svg(&timeline)) }
            }
            (render(&markdown))
            @if !passed.is_empty() { (checks("Passed checks", &passed)) }
            @if !failed.is_empty() { (checks("Failed checks", &failed)) }
            @if let Some(observations) = evidence { (evidence_details(observations)) }
            (files(ended, base))
        },
    )
}

/// A case, folded, with its verdict and duration.
fn article(ended: &EndedCase, content: &Markup) -> Markup {
    let id = &ended.id;
    html! {
        article id=(anchor(ended)) class={ "item " (class(ended)) } {
            details {
                summary {
                    h2 {
                        span class=(class(ended)) { (ended.result.verdict.to_string()) } " "
                        (id.suite) "/" (id.title()) " " span.on { "on " (id.kubelet) }
                    }
                    " " span.time { (duration(ended.seconds)) }
                }
                (content)
            }
        }
    }
}

/// The node, and links to the files of the evidence.
fn files(ended: &EndedCase, base: &EvidenceBase) -> Markup {
    let links = base.links(&ended.id);
    html! {
        p.time {
            @if let Some(node) = &ended.node { "node " (node) " " }
            @if !links.is_empty() { "Evidence:" }
            @for (name, link) in &links { " " a href=(link) { (name) } }
        }
    }
}

fn checks(title: &str, checks: &[&Check]) -> Markup {
    html! {
        details {
            summary { (title) " (" (checks.len()) ")" }
            div.wide { table {
                thead { tr { th { "check" } th { "expected" } th { "observed" } } }
                tbody {
                    @for Check { name, expected, observed, .. } in checks {
                        tr { td { (name) } td { code { (expected) } } td { code { (observed) } } }
                    }
                }
            } }
        }
    }
}

/// Objects and logs.
fn evidence_details(observations: &Observations) -> Markup {
    let overrides = Some(&observations.kubelet_config_overrides).filter(|overrides| !overrides.is_empty());
    let overrides = overrides.cloned().map(Value::Object);
    html! {
        (documents("Pods as created", recorded(&observations.pods_created)))
        (documents("Pods at the end", recorded(&observations.pods_final)))
        (events(&observations.events))
        (documents("Kubelet configuration overrides", &overrides))
        (log("Kubelet log (eviction manager)", &observations.kubelet_log))
    }
}

fn recorded<'a, T: 'a>(objects: &'a [Recorded<T>]) -> impl Iterator<Item = &'a Value> {
    objects.iter().map(Recorded::json)
}

fn documents<'a>(title: &str, documents: impl IntoIterator<Item = &'a Value>) -> Markup {
    let text = |document: &Value| serde_yaml::to_string(document).unwrap_or_else(|_| document.to_string());
    let all: Vec<String> = documents.into_iter().map(text).collect();
    html! {
        @if !all.is_empty() {
            details { summary { (title) " (" (all.len()) ")" } pre { (all.join("---\n")) } }
        }
    }
}

/// The events without their metadata, which is most of their size; the file has all of it.
fn events(events: &[RecordedEvent]) -> Markup {
    html! {
        @if !events.is_empty() {
            details {
                summary { "Events (" (events.len()) ")" }
                div.wide { table {
                    thead { tr { th { "last seen" } th { "type" } th { "reason" } th { "object" } th { "message" } } }
                    tbody { @for event in events { (event_row(event)) } }
                } }
            }
        }
    }
}

fn event_row(event: &RecordedEvent) -> Markup {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let at = last.or(event.event_time.as_ref().map(|time| time.0));
    let object = &event.involved_object;
    html! {
        tr {
            td { @if let Some(at) = at { (at.strftime("%H:%M:%S")) } }
            td { (event.type_.as_deref().unwrap_or_default()) }
            td { (event.reason()) @if let Some(count @ 2..) = event.count { " (" (count) " times)" } }
            td { (object.kind.as_deref().unwrap_or_default()) " " (object.name.as_deref().unwrap_or_default()) }
            td { (event.message().trim_end()) }
        }
    }
}

fn log(title: &str, lines: &[String]) -> Markup {
    let last = &lines[lines.len().saturating_sub(MAX_LOG_LINES)..];
    html! {
        @if !last.is_empty() {
            details {
                summary { (title) " (" (lines.len()) " lines" @if last.len() < lines.len() { ", the last " (MAX_LOG_LINES) } ")" }
                pre { (last.join("\n")) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn an_empty_configuration_is_not_evidence() {
        let title = "Kubelet configuration overrides";
        let mut observations = fixtures::evidence();
        assert!(evidence_details(&observations).0.contains(title));
        observations.kubelet_config_overrides.clear();
        assert!(!evidence_details(&observations).0.contains(title));
    }

    #[test]
    fn events_are_a_table_without_metadata() {
        let event = serde_json::json!({
            "kind": "Event", "apiVersion": "v1", "metadata": {"name": "a.1", "uid": "some-uid"},
            "involvedObject": {"kind": "Pod", "name": "a"}, "type": "Warning", "reason": "Evicted",
            "message": "it was <low>. ", "count": 2, "lastTimestamp": "2026-01-01T00:00:02Z",
        });
        let table = events(&[Recorded::decode(event).unwrap()]).0;
        for cell in ["00:00:02", "Warning", "Evicted (2 times)", "Pod a", "it was &lt;low&gt;."] {
            assert!(table.contains(&format!("<td>{cell}</td>")), "{cell}: {table}");
        }
        assert!(!table.contains("uid"), "{table}");
        assert!(events(&[]).0.is_empty());
    }
}
