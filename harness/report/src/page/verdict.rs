//! Verdicts on the page: their CSS classes, anchors and links.

use maud::{Markup, html};

use crate::run_state::EndedCase;
use crate::text::duration;
use evictlab_judge::Verdict;

/// CSS classes of a verdict.
pub(super) fn class(ended: &EndedCase) -> String {
    let person = if ended.result.verdict.needs_attention() { " person" } else { "" };
    format!("{}{person}", ended.result.verdict)
}

/// The order of cases on the page: those in most need of attention first.
pub(super) fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 0,
        verdict if verdict.needs_attention() => 1,
        Verdict::Fixed | Verdict::Flaky => 2,
        Verdict::Reproduced => 3,
        _ => 4,
    }
}

/// Anchor of a case on the page.
pub(super) fn anchor(ended: &EndedCase) -> String {
    let id = &ended.id;
    let text = format!("{}-{}-{}-{}", id.suite, id.case, id.kubelet, id.attempt);
    text.chars().map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' }).collect()
}

/// A verdict in the matrix, with a link to its case.
pub(super) fn verdict(ended: &EndedCase) -> Markup {
    let seconds = duration(ended.seconds);
    match ended.result.verdict {
        Verdict::Skipped => html! { span.skipped title=(ended.result.why) { "skipped" } },
        verdict => html! {
            a class=(class(ended)) href={ "#" (anchor(ended)) } {
                (verdict.to_string()) " " span.time { (seconds) }
            }
        },
    }
}
