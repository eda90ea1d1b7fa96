//! Invariant part of an eviction, which the recording and the model must share.
//!
//! Left out because real kubelets differ between recordings of the same scenario:
//! - usage and available amounts
//! - repetitions of events, and their order after the eviction
//! - for ephemeral-storage, offenders with no more than an empty layer and a page of log
//!   ([`EMPTY`]): the message names them after containerd's snapshotter has measured them, every 10
//!   s
//! - whether `Initialized` of a terminal pod is true, and whether its phase is `Failed` or
//!   `Succeeded`
//! - phase and reason of a pod whose container exit the kubelet missed (`ContainerStatusUnknown`)
//! - progress of a running pod at the end of the recording
//! - `ExceededGracePeriod` in one of both: a slow host needs longer than the kubelet waits
//! - events of a pod for which the recording has no events

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::message::EvictionMessage;
use evictlab_rules::threshold::Resource;
use evictlab_rules::{EvictedEvent, evicted_events};
use serde_json::Value;

/// An empty writable layer and a page of log, in bytes.
const EMPTY: i64 = 64 * 1024;

/// Event of a pod that did not end in time.
const SLOW: &str = "ExceededGracePeriod";

/// Outcome of a recording's pods.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Account {
    /// Evicted pods, in the order of their first `Evicted` events.
    evicted: Vec<String>,
    pods: BTreeMap<String, Pod>,
}

/// Outcome of a pod.
#[derive(Clone, Debug, PartialEq)]
struct Pod {
    /// Phase and reason.
    end: Option<(String, Option<String>)>,
    message: Option<MessageParts>,
    /// Keys of the annotations, and the resource.
    annotations: BTreeSet<String>,
    starved: Option<String>,
    /// Type, status, reason.
    conditions: Vec<(String, String, Option<String>)>,
    pod_events: Option<PodEvents>,
}

/// Events with their reason and field path.
#[derive(Clone, Debug, PartialEq)]
struct PodEvents {
    /// Events before the eviction, in order.
    begun: Vec<String>,
    /// Later events.
    ended: BTreeSet<String>,
}

/// Message without amounts.
#[derive(Clone, Debug, PartialEq)]
enum MessageParts {
    Pressure {
        resource: Resource,
        threshold: Option<String>,
        pod: Option<(String, String)>,
        /// Request by container, and whether naming the container depends on timing.
        containers: BTreeMap<String, (String, Chance)>,
    },
    Limit(String),
}

/// True if an offender is named depends on timing; equal to any other.
#[derive(Clone, Copy, Debug)]
struct Chance(bool);

impl PartialEq for Chance {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Account {
    /// Returns the outcome from pods and events of the API.
    pub(super) fn of(pods: &[Value], events: &[Value]) -> Self {
        let pod_events = evicted_events(events);
        let uids: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        let mut evicted: Vec<String> = Vec::new();
        for event in pod_events.iter().filter(|event| uids.contains(&*event.uid)) {
            if !evicted.contains(&event.pod) {
                evicted.push(event.pod.clone());
            }
        }
        let account = |pod: &Value| {
            (text(pod, "/metadata/name").unwrap_or_default(), Pod::of(pod, events, &pod_events))
        };
        Self { evicted, pods: pods.iter().map(account).collect() }
    }

    /// Removes from both what depends on timing.
    pub(super) fn level(&mut self, other: &mut Self) {
        for (name, pod) in &mut self.pods {
            if let Some(other) = other.pods.get_mut(name) {
                pod.level(other);
            }
        }
    }
}

impl Pod {
    fn of(pod: &Value, events: &[Value], evicted: &[EvictedEvent]) -> Self {
        let uid = &pod["metadata"]["uid"];
        let first = evicted.iter().find(|event| *uid == *event.uid);
        let annotations = first.map(|event| &event.annotations);
        let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten().map(|condition| {
            let field = |field: &str| text(condition, field);
            let kind = field("/type").unwrap_or_default();
            let status = field("/status").unwrap_or_default();
            match (ended, kind.as_str()) {
                (false, _) => (kind, "any".to_owned(), None),
                (true, "Initialized") => (kind, "any".to_owned(), None),
                (true, "Ready" | "ContainersReady") => (kind, status, None),
                _ => (kind, status, field("/reason")),
            }
        });
        let lost = pod["status"].to_string().contains("ContainerStatusUnknown");
        let phase = if ended { text(pod, "/status/phase").unwrap_or_default() } else { "alive".to_owned() };
        let end = (phase, text(pod, "/status/reason"));
        Self {
            end: (!lost).then_some(end),
            message: first.map(|event| MessageParts::of(&event.message)),
            annotations: annotations.into_iter().flat_map(BTreeMap::keys).cloned().collect(),
            starved: annotations.and_then(|all| all.get("starved_resource").cloned()),
            conditions: conditions.collect(),
            pod_events: PodEvents::of(uid, events),
        }
    }

    fn level(&mut self, other: &mut Self) {
        if self.end.is_none() || other.end.is_none() {
            (self.end, other.end) = (None, None);
        }
        match (&mut self.pod_events, &mut other.pod_events) {
            (Some(ours), Some(theirs)) => {
                if !(ours.ended.contains(SLOW) && theirs.ended.contains(SLOW)) {
                    ours.ended.remove(SLOW);
                    theirs.ended.remove(SLOW);
                }
            }
            (ours, theirs) => (*ours, *theirs) = (None, None),
        }
        if let (
            Some(MessageParts::Pressure { containers: ours, .. }),
            Some(MessageParts::Pressure { containers: theirs, .. }),
        ) = (&mut self.message, &mut other.message)
        {
            let both = |name: &str, there: &BTreeMap<String, (String, Chance)>| there.contains_key(name);
            let before = ours.clone();
            ours.retain(|name, (_, chance)| !chance.0 || both(name, theirs));
            theirs.retain(|name, (_, chance)| !chance.0 || both(name, &before));
        }
    }
}

impl PodEvents {
    fn of(uid: &Value, events: &[Value]) -> Option<Self> {
        let all: Vec<(String, String)> = events
            .iter()
            .filter(|event| event["involvedObject"]["uid"] == *uid)
            .map(|event| {
                let reason = text(event, "/reason").unwrap_or_default();
                let part = text(event, "/involvedObject/fieldPath").unwrap_or_default();
                (reason.clone(), format!("{reason} {part}").trim().to_owned())
            })
            .collect();
        let ends = |reason: &str| matches!(reason, "Evicted" | "Killing" | "ExceededGracePeriod");
        let (last, begun): (Vec<_>, Vec<_>) = all.iter().partition(|(reason, _)| ends(reason));
        let sentence = |(_, pod_events): &(String, String)| pod_events.clone();
        (!all.is_empty()).then(|| Self {
            begun: begun.into_iter().map(sentence).collect(),
            ended: last.into_iter().map(sentence).collect(),
        })
    }
}

impl MessageParts {
    fn of(message: &str) -> Self {
        match message.parse() {
            Ok(EvictionMessage::NodePressure(pressure)) => {
                let storage = pressure.resource == Resource::EphemeralStorage;
                let container = |container: evictlab_rules::message::Offender| {
                    let chance = Chance(storage && container.usage.value() <= EMPTY);
                    (container.name, (container.request.to_string(), chance))
                };
                Self::Pressure {
                    resource: pressure.resource,
                    threshold: pressure.threshold.map(|threshold| threshold.quantity.to_string()),
                    pod: pressure.pod.map(|pod| (pod.name, pod.request.to_string())),
                    containers: pressure.containers.into_iter().map(container).collect(),
                }
            }
            Ok(_) => Self::Limit(message.to_owned()),
            Err(error) => panic!("{error}"),
        }
    }
}

fn text(object: &Value, path: &str) -> Option<String> {
    object.pointer(path).and_then(Value::as_str).map(str::to_owned)
}
