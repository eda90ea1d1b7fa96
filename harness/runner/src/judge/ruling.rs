//! The verdict.

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::EvictionMessage;

use super::expected::{Expected, Held};
use super::seen::{PodSeen, Seen};
use super::{Check, Doubt, Judgement, Phase, Verdict, asked, doubt, invariants};
use crate::case::{Case, KnownBug};
use crate::observe::Observations;

/// Judges what was seen of a case on a node that is to run `kubelet`.
///
/// What is expected holds: `passed`, or `fixed` where a known bug should have shown. Else what the known bug shows
/// instead holds: `reproduced`. Else `failed`, unless the evidence does not suffice: `inconclusive`. A violated
/// invariant fails the case whatever it expects, but for a kubelet in which a known bug was mended: it may do as the next one without the bug; a node that runs another kubelet is an `error`. Pure: the same
/// evidence gives the same judgement.
pub fn judge(case: &Case, kubelet: &KubeletVersion, seen: &Observations) -> Judgement {
    if seen.kubelet_version.parse().as_ref() != Ok(kubelet) {
        let why = format!("the node runs kubelet {}, where {kubelet} was to run", seen.kubelet_version);
        let judgement = Judgement::without_evidence(Verdict::Error, why);
        return Judgement { phase: Some(Phase::Judge), ..judgement };
    }
    let seen = Seen::of(kubelet, seen);
    let expected = Expected::of(case);
    let held = expected.check(&seen);
    // A bug that comes by chance is for the count over all runs to tell.
    let bug = known_bug(case, kubelet).filter(|bug| !bug.sometimes);
    let mut invariants = invariants::checks(&seen, kubelet);
    // A kubelet that was patched does what a later one does, not what the rules say of its version.
    if let Some(mended) = bug.filter(|_| held.holds()).and_then(|bug| mended(bug, kubelet))
        && !all_hold(&invariants)
    {
        let as_later = invariants::checks(&seen, &mended);
        if all_hold(&as_later) {
            invariants = as_later;
        }
    }
    let mut judgement = rule(case, &seen, &expected, &held, bug, &invariants);
    judgement.checks.extend(invariants);
    judgement.testimony = seen.pods.iter().filter(|pod| pod.was_evicted()).map(PodSeen::testimony).collect();
    judgement.diff = held.diff;
    match asked::rate(case, seen.observations) {
        None => {}
        Some(Ok(rate)) => judgement.rate = Some(rate),
        Some(Err(check)) => {
            judgement.verdict = Verdict::Failed;
            judgement.why = broken(std::slice::from_ref(&check));
            judgement.checks.insert(0, check);
        }
    }
    judgement
}

/// The known bug that a kubelet has, if any.
pub fn known_bug<'a>(case: &'a Case, kubelet: &KubeletVersion) -> Option<&'a KnownBug> {
    case.known_bugs.iter().find(|bug| bug.kubelet.matches(kubelet))
}

/// The next minor without the bug.
fn mended(bug: &KnownBug, kubelet: &KubeletVersion) -> Option<KubeletVersion> {
    /// How many minors a bug is looked after.
    const LATER: u32 = 20;
    let mut minors = (kubelet.minor + 1..=kubelet.minor + LATER).map(KubeletVersion::minor);
    minors.find(|later| !bug.kubelet.matches(later))
}

fn all_hold(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.holds)
}

fn rule(
    case: &Case,
    seen: &Seen<'_>,
    expected: &Expected<'_>,
    held: &Held,
    bug: Option<&KnownBug>,
    invariants: &[Check],
) -> Judgement {
    let ruled = |verdict, why, checks: &[Check]| {
        let mut judgement = Judgement::without_evidence(verdict, why);
        judgement.checks = checks.to_vec();
        judgement
    };
    let doubted = |(doubt, why): (Doubt, String), checks: &[Check]| Judgement {
        doubt: Some(doubt),
        ..ruled(Verdict::Inconclusive, why, checks)
    };
    if !all_hold(invariants) {
        return ruled(Verdict::Failed, broken(invariants), &held.checks);
    }
    if held.holds() {
        return match (held.lost.clone().or_else(|| doubt::of_a_pass(case, seen)), bug) {
            (Some(reason), _) => doubted(reason, &held.checks),
            (None, Some(bug)) => {
                let why =
                    format!("{} should have shown and did not: {}", named(bug), summary(expected, seen));
                Judgement { known_bug: Some(named(bug)), ..ruled(Verdict::Fixed, why, &held.checks) }
            }
            (None, None) => ruled(Verdict::Passed, summary(expected, seen), &held.checks),
        };
    }
    let shown = bug.map(|bug| (bug, Expected::of_bug(case, bug)));
    if let Some((bug, expected)) = &shown {
        let of_bug = expected.check(seen);
        if of_bug.holds() {
            return match of_bug.lost.clone().or_else(|| doubt::of_a_pass(case, seen)) {
                Some(reason) => doubted(reason, &of_bug.checks),
                None => {
                    let about = bug.about.as_deref().unwrap_or("It shows as stated.");
                    let why = format!("{about} {}", sentence(&summary(expected, seen)));
                    Judgement {
                        known_bug: Some(named(bug)),
                        ..ruled(Verdict::Reproduced, why, &of_bug.checks)
                    }
                }
            };
        }
    }
    // Where a bug is known, less than what is expected may have been there to see.
    let at_most = shown.as_ref().map_or(expected, |(_, expected)| expected);
    match doubt::of_a_failure(case, at_most, seen) {
        Some(reason) => doubted(reason, &held.checks),
        None => {
            let why = match bug {
                Some(bug) => format!("{} did not show either: {}", named(bug), broken(&held.checks)),
                None => broken(&held.checks),
            };
            ruled(Verdict::Failed, why, &held.checks)
        }
    }
}

/// The first check that does not hold, and how many more.
fn broken(checks: &[Check]) -> String {
    let mut broken = checks.iter().filter(|check| !check.holds);
    let Some(Check { name, expected, observed, .. }) = broken.next() else { return String::new() };
    let more = match broken.count() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    format!("{name}: expected {expected}, observed {observed}{more}")
}

pub(super) fn named(bug: &KnownBug) -> String {
    let upstream = bug.upstream.as_ref().map(ToString::to_string);
    upstream.or_else(|| bug.about.clone()).unwrap_or_else(|| "a known bug".to_owned())
}

/// What was seen, in one line.
fn summary(expected: &Expected<'_>, seen: &Seen<'_>) -> String {
    let first = expected.evicted().first().and_then(|name| seen.pod(name.as_str()));
    let Some(pod) = first.filter(|pod| pod.was_evicted()) else {
        return "what is expected was seen".to_owned();
    };
    let source = if pod.events.is_empty() { "its status (the event is missing)" } else { "the event" };
    match pod.message().map(str::parse::<EvictionMessage>) {
        Some(Ok(EvictionMessage::NodePressure(message))) => {
            let names: Vec<_> = message.containers.iter().map(|it| it.name.as_str()).collect();
            let names = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
            let pod_too = if message.pod.is_some() { "the pod, " } else { "" };
            format!("{} was evicted, and {source} names {pod_too}{names}", pod.name)
        }
        Some(Ok(message)) => format!("{} was evicted: {}", pod.name, message.to_string().trim_end()),
        _ => format!("{} was evicted", pod.name),
    }
}

pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", characters.as_str())
}
