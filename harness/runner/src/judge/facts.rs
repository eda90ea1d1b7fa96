//! A message taken apart into facts, one line each, and expected facts laid beside observed ones.

use std::collections::BTreeMap;

use evictlab_rules::message::{EvictionMessage, Offender};
use similar::TextDiff;

use super::Check;
use crate::case::{Figures, Message, Resource};

/// A fact of the message: what it is about, what is expected of it, and what was observed.
struct Fact {
    /// Such as `container el1`.
    about: String,
    expected: Expected,
    observed: Option<String>,
}

enum Expected {
    /// Nothing was stated of it.
    Unstated,
    /// It must be there like this; the bool says whether it is.
    Stated(String, bool),
    /// It must not be there.
    Absent,
}

impl Fact {
    fn holds(&self) -> bool {
        match &self.expected {
            Expected::Unstated => true,
            Expected::Stated(_, holds) => *holds,
            Expected::Absent => self.observed.is_none(),
        }
    }

    fn check(&self) -> Option<Check> {
        let none = || "not in the message".to_owned();
        let expected = match &self.expected {
            Expected::Unstated => return None,
            Expected::Stated(text, _) => text.clone(),
            Expected::Absent => none(),
        };
        let observed = self.observed.clone().unwrap_or_else(none);
        Some(Check { name: format!("message: {}", self.about), holds: self.holds(), expected, observed })
    }

    /// The lines on either side of a diff. What holds is the same on both.
    fn lines(&self) -> [Option<String>; 2] {
        let line = |text: &String| format!("{}: {text}\n", self.about);
        let observed = self.observed.as_ref().map(line);
        let expected = match &self.expected {
            _ if self.holds() => observed.clone(),
            Expected::Stated(text, _) => Some(line(text)),
            Expected::Unstated | Expected::Absent => None,
        };
        [expected, observed]
    }
}

/// Expected against observed: what was checked, and the diff, empty unless something differs.
pub(super) fn compare(expected: &Message, observed: Option<&EvictionMessage>) -> (Vec<Check>, String) {
    let facts = facts(expected, observed);
    let mut sides = [String::new(), String::new()];
    for fact in &facts {
        for (side, line) in sides.iter_mut().zip(fact.lines()) {
            side.push_str(&line.unwrap_or_default());
        }
    }
    let [old, new] = sides;
    let diff = TextDiff::from_lines(&old, &new);
    let diff = if old == new {
        String::new()
    } else {
        diff.unified_diff().context_radius(usize::MAX / 2).header("expected", "observed").to_string()
    };
    (facts.iter().filter_map(Fact::check).collect(), diff)
}

fn facts(expected: &Message, observed: Option<&EvictionMessage>) -> Vec<Fact> {
    let pressure = match observed {
        Some(EvictionMessage::NodePressure(pressure)) => Some(pressure),
        _ => None,
    };
    let mut facts =
        vec![fact("resource", expected.resource.map(resource), pressure.map(|it| it.resource.to_string()))];
    if let Some(clause) = pressure.and_then(|it| it.threshold.as_ref()) {
        let text = format!("{}, available {}", clause.quantity, clause.available);
        facts.push(Fact {
            about: "threshold".to_owned(),
            expected: Expected::Unstated,
            observed: Some(text),
        });
    }
    let whole = expected.containers.is_some();
    let pod = pressure.and_then(|it| it.pod.as_ref());
    if pod.is_some() || expected.pod.is_some() {
        facts.push(figures("pod".to_owned(), expected.pod.as_ref(), whole, pod));
    }
    let mut names: BTreeMap<&str, (Option<&Figures>, Option<&Offender>)> = BTreeMap::new();
    for (name, figures) in expected.containers.iter().flatten() {
        names.entry(name.as_str()).or_default().0 = Some(figures);
    }
    for offender in pressure.iter().flat_map(|it| &it.containers) {
        names.entry(&offender.name).or_default().1 = Some(offender);
    }
    for (name, (expected, observed)) in names {
        facts.push(figures(format!("container {name}"), expected, whole, observed));
    }
    facts.extend(limits(expected, observed));
    facts.retain(|fact| !matches!(fact, Fact { expected: Expected::Unstated, observed: None, .. }));
    facts
}

fn limits(expected: &Message, observed: Option<&EvictionMessage>) -> [Fact; 3] {
    let own = |of: &dyn Fn(&EvictionMessage) -> Option<String>| observed.and_then(of);
    let emptydir = expected.emptydir_limit.as_ref().map(|it| format!("{} {}", it.volume, it.limit));
    let container = expected.container_limit.as_ref().map(|it| format!("{} {}", it.container, it.limit));
    [
        fact(
            "limit of emptyDir",
            emptydir,
            own(&|message| match message {
                EvictionMessage::EmptyDirLimit { volume, limit } => Some(format!("{volume} {limit}")),
                _ => None,
            }),
        ),
        fact(
            "limit of pod",
            expected.pod_limit.as_ref().map(ToString::to_string),
            own(&|message| match message {
                EvictionMessage::PodLimit { limit } => Some(limit.to_string()),
                _ => None,
            }),
        ),
        fact(
            "limit of container",
            container,
            own(&|message| match message {
                EvictionMessage::ContainerLimit { container, limit } => Some(format!("{container} {limit}")),
                _ => None,
            }),
        ),
    ]
}

fn fact(about: &str, expected: Option<String>, observed: Option<String>) -> Fact {
    let expected = match expected {
        None => Expected::Unstated,
        Some(text) => {
            let holds = observed.as_deref() == Some(text.as_str());
            Expected::Stated(text, holds)
        }
    };
    Fact { about: about.to_owned(), expected, observed }
}

fn figures(about: String, expected: Option<&Figures>, whole: bool, observed: Option<&Offender>) -> Fact {
    let expected = match expected {
        None if whole => Expected::Absent,
        None => Expected::Unstated,
        Some(Figures { request, usage }) => {
            let holds = observed.is_some_and(|it| {
                request.as_ref().is_none_or(|request| request.as_str() == it.request.to_string())
                    && usage.as_ref().is_none_or(|bound| bound.holds(&it.usage))
            });
            let usage = usage.as_ref().map_or("any".to_owned(), ToString::to_string);
            let request = request.as_ref().map_or("any".to_owned(), ToString::to_string);
            Expected::Stated(format!("usage {usage}, request {request}"), holds)
        }
    };
    let observed = observed.map(|it| format!("usage {}, request {}", it.usage, it.request));
    Fact { about, expected, observed }
}

fn resource(resource: Resource) -> String {
    match resource {
        Resource::Memory => evictlab_rules::threshold::Resource::Memory,
        Resource::EphemeralStorage => evictlab_rules::threshold::Resource::EphemeralStorage,
        Resource::Inodes => evictlab_rules::threshold::Resource::Inodes,
        Resource::Pids => evictlab_rules::threshold::Resource::Pids,
    }
    .to_string()
}
