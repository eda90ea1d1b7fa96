//! What a case expects, or what one of its known bugs shows instead, held against what was seen.

use evictlab_rules::message::EvictionMessage;

use super::killed::{self, Killed};
use super::seen::{PodSeen, Seen};
use super::{Check, Doubt, asked, facts};
use crate::case::{Case, KnownBug, Message, Name, Presence, Witness};
use crate::cel::Scope;

/// An expectation, complete.
pub(super) struct Expected<'a> {
    case: &'a Case,
    evicted: &'a [Name],
    message: Option<Message>,
    killed: Option<Killed>,
    bug: Option<&'a KnownBug>,
}

/// What came of an expectation.
pub(super) struct Held {
    /// What was checked.
    pub checks: Vec<Check>,
    /// The message, expected against observed.
    pub diff: String,
    /// What could not be checked for want of evidence.
    pub lost: Option<(Doubt, String)>,
}

impl Held {
    /// Whether everything checked held.
    pub(super) fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    fn lose(&mut self, why: String) {
        self.lost.get_or_insert((Doubt::EvidenceLost, why));
    }
}

impl<'a> Expected<'a> {
    /// As the case states it.
    pub(super) fn of(case: &'a Case) -> Self {
        let expect = &case.expect;
        let killed = expect.killed_within.map(Killed::Within);
        Self { case, evicted: &expect.evicted, message: expect.message.clone(), killed, bug: None }
    }

    /// As a known bug states it; what it leaves out is as the case states it.
    pub(super) fn of_bug(case: &'a Case, bug: &'a KnownBug) -> Self {
        let expect = &case.expect;
        let message = match (&bug.message, &expect.message) {
            (Some(bug), Some(expect)) => Some(inherited(bug, expect)),
            (bug, expect) => bug.clone().or_else(|| expect.clone()),
        };
        Self {
            case,
            evicted: bug.evicted.as_deref().unwrap_or(&expect.evicted),
            message,
            killed: bug.killed_after.map(Killed::After).or(expect.killed_within.map(Killed::Within)),
            bug: Some(bug),
        }
    }

    /// The names of the pods that are evicted.
    pub(super) fn evicted(&self) -> &'a [Name] {
        self.evicted
    }

    /// What the message says.
    pub(super) fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    /// Holds it against what was seen.
    pub(super) fn check(&self, seen: &Seen<'_>) -> Held {
        let mut held = Held { checks: vec![], diff: String::new(), lost: None };
        let expect = &self.case.expect;
        held.checks.push(self.who(seen));
        let evicted: Vec<_> = self.evicted.iter().filter_map(|name| seen.pod(name.as_str())).collect();
        if let Some(first) = evicted.first().filter(|pod| pod.was_evicted()) {
            self.message_of(first, &mut held);
            if let Some(bound) = self.killed {
                match killed::check(bound, first) {
                    Ok(check) => held.checks.push(check),
                    Err(lost) => held.lost = Some(lost),
                }
            }
        }
        for pod in evicted.into_iter().filter(|pod| pod.was_evicted()) {
            for witness in expect.witnesses.iter().flatten() {
                witnessed(*witness, pod, &mut held);
            }
            if let Some(presence) = expect.annotations {
                annotated(presence, pod, &mut held);
            }
            if let Some(presence) = expect.disruption_target {
                let said = pod.condition.map(str::to_owned);
                held.checks.push(present(format!("DisruptionTarget of {}", pod.name), presence, said));
            }
        }
        for (pod, containers) in &expect.summary {
            listed(pod.as_str(), containers, seen, &mut held);
        }
        if let Some(refused) = &expect.refused {
            let pod = self.case.ephemeral_containers.first().map(|it| it.pod.as_str()).unwrap_or_default();
            let expected =
                format!("{} {}: {}", refused.code, refused.reason, refused.message.replace("$(POD)", pod));
            let observed = seen.refused.map(|status| {
                let text = |field: &str| status[field].as_str().unwrap_or_default();
                format!("{} {}: {}", status["code"], text("reason"), text("message"))
            });
            let holds = observed.as_ref() == Some(&expected);
            let observed = observed.unwrap_or_else(|| "it was accepted".to_owned());
            held.checks.push(Check { name: "the API refuses it".to_owned(), holds, expected, observed });
        }
        if let Some(step) = &seen.observations.stopped_at {
            held.checks.push(Check {
                name: "the steps of the case".to_owned(),
                holds: false,
                expected: "each is done".to_owned(),
                observed: format!("waited in vain: {step}"),
            });
        }
        let scope = Scope::of(seen.observations);
        let facts = asked::facts(self.case, self.bug, seen.observations);
        held.checks.extend(facts.into_iter().map(|fact| asked::check(fact, &scope)));
        held
    }

    fn who(&self, seen: &Seen<'_>) -> Check {
        let is_expected = |pod: &PodSeen<'_>| self.evicted.iter().any(|name| name.as_str() == pod.name);
        let list = |evicted: &dyn Fn(&PodSeen<'_>) -> bool| {
            let open = |pod: &&PodSeen<'_>| {
                self.case.expect.may_be_evicted.iter().any(|name| name.as_str() == pod.name)
            };
            let (gone, alive): (Vec<_>, Vec<_>) =
                seen.pods.iter().filter(|pod| !open(pod)).partition(|pod| evicted(pod));
            let names = |pods: Vec<&PodSeen<'_>>| {
                pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>().join(", ")
            };
            let gone = if gone.is_empty() {
                "nobody is evicted".to_owned()
            } else {
                format!("evicted: {}", names(gone))
            };
            if alive.is_empty() { gone } else { format!("{gone}; not evicted: {}", names(alive)) }
        };
        let (expected, observed) = (list(&is_expected), list(&|pod| pod.was_evicted()));
        let all_there = self.evicted.iter().all(|name| seen.pod(name.as_str()).is_some());
        Check {
            name: "who is evicted".to_owned(),
            holds: all_there && expected == observed,
            expected,
            observed,
        }
    }

    fn message_of(&self, pod: &PodSeen<'_>, held: &mut Held) {
        let Some(expected) = &self.message else { return };
        let said = pod.message().unwrap_or_default();
        let read = said.parse::<EvictionMessage>();
        if let Err(error) = &read {
            let expected = "an eviction message".to_owned();
            let check =
                Check { name: "message".to_owned(), holds: false, expected, observed: error.to_string() };
            held.checks.push(check);
        }
        let (checks, diff) = facts::compare(expected, read.ok().as_ref());
        held.checks.extend(checks);
        held.diff = diff;
    }
}

fn inherited(bug: &Message, expect: &Message) -> Message {
    Message {
        resource: bug.resource.or(expect.resource),
        containers: bug.containers.clone().or_else(|| expect.containers.clone()),
        pod: bug.pod.clone().or_else(|| expect.pod.clone()),
        emptydir_limit: bug.emptydir_limit.clone().or_else(|| expect.emptydir_limit.clone()),
        pod_limit: bug.pod_limit.clone().or_else(|| expect.pod_limit.clone()),
        container_limit: bug.container_limit.clone().or_else(|| expect.container_limit.clone()),
    }
}

/// A witness is there. That the witnesses agree is an invariant.
fn witnessed(witness: Witness, pod: &PodSeen<'_>, held: &mut Held) {
    let (name, said) = match witness {
        Witness::Event => ("event", pod.events.first().map(|event| event.message.as_str())),
        Witness::Status => ("status", pod.status),
        Witness::Condition => ("condition", pod.condition),
    };
    match said {
        // Events are delivered at best effort: a missing one says nothing of the kubelet.
        None if witness == Witness::Event => {
            held.lose(format!("the Evicted event of {} is missing", pod.name))
        }
        said => {
            let name = format!("{name} of {}", pod.name);
            held.checks.push(present(name, Presence::Present, said.map(str::to_owned)));
        }
    }
}

fn annotated(presence: Presence, pod: &PodSeen<'_>, held: &mut Held) {
    let Some(event) = pod.events.first() else {
        return held
            .lose(format!("the Evicted event of {} is missing, and its annotations with it", pod.name));
    };
    let ours = |key: &&String| key.starts_with("offending_") || *key == "starved_resource";
    let there: Vec<_> = event.annotations.keys().filter(ours).map(String::as_str).collect();
    let there = (!there.is_empty()).then(|| there.join(", "));
    held.checks.push(present(format!("annotations of {}", pod.name), presence, there));
}

fn present(name: String, presence: Presence, there: Option<String>) -> Check {
    let (expected, holds) = match presence {
        Presence::Present => ("there", there.is_some()),
        Presence::Absent => ("not there", there.is_none()),
    };
    Check {
        name,
        holds,
        expected: expected.to_owned(),
        observed: there.unwrap_or_else(|| "not there".to_owned()),
    }
}

/// The last sample that has the pod lists exactly these containers.
fn listed(pod: &str, containers: &[Name], seen: &Seen<'_>, held: &mut Held) {
    let uid = seen.pod(pod).map(|pod| pod.pod.metadata.uid.as_str()).unwrap_or_default();
    if seen.samples.is_empty() {
        return held.lose("no Summary was had from the node".to_owned());
    }
    let last = seen.samples.iter().rev().find_map(|sample| sample.pod(uid));
    let sorted = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.join(", ")
    };
    let expected = sorted(containers.iter().map(Name::as_str).collect());
    let observed = last.map(|stats| sorted(stats.containers.iter().map(|it| it.name.as_str()).collect()));
    let holds = observed.as_ref() == Some(&expected);
    let observed = observed.unwrap_or_else(|| "the pod is in none".to_owned());
    held.checks.push(Check {
        name: format!("the Summary lists containers of {pod}"),
        holds,
        expected,
        observed,
    });
}
