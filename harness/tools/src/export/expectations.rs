//! The expectations of an exported case, as sentences in its script.

use evictlab_case::{
    Case, DurationText, ExpectedMessage, KnownBug, Name, Presence, ResourceAmounts, Witness,
};

/// Returns the expectations, one sentence each.
pub(crate) fn expected(case: &Case) -> Vec<String> {
    let expect = &case.expect;
    let survivors = if expect.may_be_evicted.is_empty() { ", and no other pod" } else { "" };
    let mut sentences = vec![format!("{} evicted{survivors}", are(&expect.evicted))];
    sentences.extend(expect.message.iter().flat_map(message));
    sentences.extend(expect.witnesses.iter().map(|all| {
        let word = |witness: &Witness| match witness {
            Witness::Event => "the event",
            Witness::Status => "the status",
            Witness::Condition => "the condition",
        };
        format!("the message is in {}", all.iter().map(word).collect::<Vec<_>>().join(", "))
    }));
    sentences.extend(expect.annotations.map(|there| presence("the event's annotations", there)));
    sentences.extend(expect.disruption_target.map(|there| presence("the condition DisruptionTarget", there)));
    let within = expect.killed_within.map(|time| format!("its containers end within {time} of the event"));
    sentences.extend(within.into_iter().chain(expect.killed_after.map(killed_late)));
    sentences
}

/// Returns the results of a kubelet with the known bug.
pub(crate) fn shown_by(bug: &KnownBug) -> Vec<String> {
    let evicted = bug.evicted.iter().map(|pods| {
        if pods.is_empty() { "no pod is evicted".to_owned() } else { format!("{} evicted", are(pods)) }
    });
    let late = bug.killed_after.map(killed_late);
    let facts = bug.that.iter().map(|fact| format!("{}: {fact}", fact.what));
    let rejected = bug.rejected.iter().map(|pods| format!("{} rejected at admission", are(pods)));
    evicted.chain(rejected).chain(bug.message.iter().flat_map(message)).chain(late).chain(facts).collect()
}

fn killed_late(time: DurationText) -> String {
    format!("its containers end {time} or more after the event")
}

/// Returns the assertions in CEL, with their limits and values, and the conditions that evictlab
/// waits for.
pub(crate) fn facts(case: &Case) -> impl Iterator<Item = String> {
    let expect = &case.expect;
    let until = case.until.iter().map(|until| format!("observation ends when {until}"));
    let rate = expect.rate.iter().map(|rate| {
        let share =
            rate.at_least.map_or("each run".to_owned(), |least| format!("{} % of all runs", least * 100.0));
        format!("{}: true in {share}, of {}", rate.what, rate.of)
    });
    let facts = expect.that.iter().map(|fact| {
        let range =
            if fact.kubelet.is_any() { String::new() } else { format!(" (kubelets {})", fact.kubelet) };
        format!("{}{range}: {fact}, of {}", fact.what, fact.value)
    });
    facts.chain(rate).chain(until)
}

fn are(pods: &[Name]) -> String {
    let names = pods.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    format!("{names} {}", if pods.len() == 1 { "is" } else { "are" })
}

fn presence(what: &str, there: Presence) -> String {
    format!("{what}: {}", if there == Presence::Present { "present" } else { "absent" })
}

fn message(message: &ExpectedMessage) -> Vec<String> {
    let mut sentences = vec![];
    if let Some(containers) = &message.containers {
        let named = containers.iter().map(|(name, figures)| format!("{name}{}", in_parentheses(figures)));
        sentences.push(if containers.is_empty() {
            "the message names no container".to_owned()
        } else {
            format!("the message names {}", named.collect::<Vec<_>>().join(", "))
        });
    }
    sentences.extend(
        message.pod.iter().map(|figures| format!("the message names the pod{}", in_parentheses(figures))),
    );
    sentences.extend(message.emptydir_limit.iter().map(|limit| {
        format!("the message is about the emptyDir {} and its limit of {}", limit.volume, limit.limit)
    }));
    sentences.extend(
        message.pod_limit.iter().map(|limit| format!("the message is about the pod's limit of {limit}")),
    );
    sentences.extend(message.container_limit.iter().map(|limit| {
        format!("the message is about the container {} and its limit of {}", limit.container, limit.limit)
    }));
    sentences
}

/// Request and usage in parentheses; empty without both.
fn in_parentheses(figures: &ResourceAmounts) -> String {
    let request = figures.request.iter().map(|request| format!("request {request}"));
    let usage = figures.usage.iter().map(|usage| format!("usage {usage}"));
    let all: Vec<String> = request.chain(usage).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}
