//! The first part of the page: cases that need attention, and known bugs.

use maud::{Markup, html};

use super::rendered::render;
use super::verdict::{anchor, class, rank};
use crate::attention::AttentionGroups;
use crate::known_bugs::known_bugs;
use crate::run_state::{EndedCase, RunState};

/// Maximum number of cases that are listed above the matrix.
const MAX_LISTED: usize = 20;

/// Renders the cases that need attention, with links to their sections, and the folded list of
/// known bugs.
pub(super) fn overview(state: &RunState) -> Markup {
    let mut groups = AttentionGroups::of(state);
    groups.unexpected.sort_by_key(|(first, _)| rank(first.result.verdict));
    let bugs = known_bugs(state);
    let bugs: String =
        bugs.iter().map(|bug| format!("- {}\n", bug.render(state, bug.name.trim_end()))).collect();
    let more = groups.unexpected.len().saturating_sub(MAX_LISTED);
    html! {
        @if !groups.unexpected.is_empty() {
            h2 { "Needs attention" }
            ul.attention {
                @for (first, others) in groups.unexpected.iter().take(MAX_LISTED) { (group(first, others)) }
                @if more > 0 { li { (more) " more below" } }
            }
        }
        @if let Some((title, lines)) = groups.expected_failures() { (folded(&title, &lines)) }
        @if !bugs.is_empty() { (folded(&format!("Known bugs: {}", bugs.lines().count()), &bugs)) }
    }
}

/// A case with the attempts of the same outcome.
fn group(first: &EndedCase, others: &[&EndedCase]) -> Markup {
    html! {
        li {
            span class=(class(first)) { (first.result.verdict.to_string()) } " "
            (first.id.suite) "/" (first.id.case) " on "
            @for (place, ended) in std::iter::once(&first).chain(others).enumerate() {
                @if place > 0 { ", " }
                a href={ "#" (anchor(ended)) } {
                    (ended.id.kubelet) @if ended.id.attempt > 1 { " #" (ended.id.attempt) }
                }
            }
            ": " (first.result.why.trim_end())
        }
    }
}

fn folded(title: &str, markdown: &str) -> Markup {
    html! { details { summary { (title) } (render(markdown)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn cases_in_need_of_attention_come_with_their_reason() {
        let page = overview(&fixtures::state_after(&fixtures::full_run())).into_string();
        insta::assert_snapshot!(page.replace("<li>", "\n<li>"));
    }
}
