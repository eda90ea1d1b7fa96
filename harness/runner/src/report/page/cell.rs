//! A case on a kubelet: its course drawn, what was said taken apart, and what it was made of.

use maud::{Markup, html};
use serde_json::Value;

use super::{anchor, class, markdown};
use crate::judge::Check;
use crate::observe::Observations;
use crate::report::account::{body, duration};
use crate::report::ledger::{Ended, Ledger};
use crate::report::timeline::{Timeline, figure};

/// How many lines of a log are shown, its last ones.
const LINES: usize = 200;

pub(super) fn cell(ledger: &Ledger, ended: &Ended, evidence: Option<&Observations>) -> Markup {
    let id = &ended.id;
    let planned = ledger.planned(id);
    let mut account = String::new();
    body(&mut account, planned, ended);
    let (held, broken): (Vec<&Check>, Vec<&Check>) =
        ended.judgement.checks.iter().partition(|check| check.holds);
    html! {
        article id=(anchor(ended)) class=(class(ended)) {
            h2 {
                span class=(class(ended)) { (ended.judgement.verdict.to_string()) } " "
                (id.suite) "/" (id.title()) " " span.on { "on " (id.kubelet) }
            }
            @if let Some(planned) = planned { p.about { (planned.about.trim_end()) } }
            @if let Some(timeline) = evidence.and_then(Timeline::of) { div.wide { (figure(&timeline)) } }
            (markdown::rendered(&account))
            @if !held.is_empty() { (checks("What held", &held)) }
            @if !broken.is_empty() { (checks("What did not hold", &broken)) }
            @if let Some(seen) = evidence { (made_of(seen)) }
            p.time {
                @if let Some(node) = &ended.node { "node " (node) ", " }
                (duration(ended.seconds)) " from lease to reset"
            }
        }
    }
}

fn checks(title: &str, checks: &[&Check]) -> Markup {
    html! {
        details {
            summary { (title) " (" (checks.len()) ")" }
            div.wide { table {
                thead { tr { th { "what" } th { "expected" } th { "observed" } } }
                tbody {
                    @for Check { name, expected, observed, .. } in checks {
                        tr { td { (name) } td { code { (expected) } } td { code { (observed) } } }
                    }
                }
            } }
        }
    }
}

/// The objects and logs.
fn made_of(seen: &Observations) -> Markup {
    let overrides = Value::Object(seen.kubelet_config_overrides.clone());
    html! {
        (documents("Pods as they were created", &seen.pods_created))
        (documents("Pods at the end", &seen.pods_final))
        (documents("Events", &seen.events))
        (documents("Changes of the kubelet's configuration", std::slice::from_ref(&overrides)))
        (log("The kubelet's log of the eviction manager", &seen.kubelet_log))
    }
}

fn documents(title: &str, documents: &[Value]) -> Markup {
    let text = |document: &Value| serde_yaml::to_string(document).unwrap_or_else(|_| document.to_string());
    let all: Vec<String> = documents.iter().map(text).collect();
    html! {
        @if !all.is_empty() {
            details { summary { (title) " (" (all.len()) ")" } pre { (all.join("---\n")) } }
        }
    }
}

fn log(title: &str, lines: &[String]) -> Markup {
    let last = &lines[lines.len().saturating_sub(LINES)..];
    html! {
        @if !last.is_empty() {
            details {
                summary { (title) " (" (lines.len()) " lines" @if last.len() < lines.len() { ", the last " (LINES) } ")" }
                pre { (last.join("\n")) }
            }
        }
    }
}
