//! What of an eviction is the same each time: the account that the recording and the model must give alike.

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::invariant::evicted_events;
use evictlab_rules::message::EvictionMessage;
use serde_json::Value;

/// What came of a recording's pods.
#[derive(Debug, PartialEq)]
pub struct Account {
    /// The evicted pods, in the order of their first Evicted events.
    evicted: Vec<String>,
    pods: BTreeMap<String, Pod>,
}

/// What came of one pod.
#[derive(Debug, PartialEq)]
struct Pod {
    phase: String,
    reason: Option<String>,
    message: Option<Said>,
    /// Keys, and the starved resource.
    annotations: BTreeSet<String>,
    starved: Option<String>,
    /// Type, status, reason.
    conditions: Vec<(String, String, Option<String>)>,
    /// What is told before anybody is evicted, in order: reason, and of which part of the pod.
    begun: Vec<String>,
    /// What is told from then on, without order and number.
    ended: BTreeSet<String>,
}

/// A message without what depends on time.
#[derive(Debug, PartialEq)]
enum Said {
    Pressure {
        resource: String,
        threshold: Option<String>,
        pod: Option<(String, String)>,
        /// Name and request.
        containers: BTreeMap<String, String>,
    },
    Limit(String),
}

impl Account {
    /// The account of pods and events as the API gives them.
    pub fn of(pods: &[Value], events: &[Value]) -> Self {
        let events_of_pods: Vec<_> = evicted_events(events);
        let mut evicted: Vec<String> = Vec::new();
        for event in &events_of_pods {
            if !evicted.contains(&event.pod) {
                evicted.push(event.pod.clone());
            }
        }
        let account = |pod: &Value| {
            let name = text(pod, "/metadata/name").unwrap_or_default();
            (name.clone(), Pod::of(&name, pod, events))
        };
        Self { evicted, pods: pods.iter().map(account).collect() }
    }
}

impl Pod {
    fn of(name: &str, pod: &Value, events: &[Value]) -> Self {
        let of_pod = |event: &&Value| {
            event["involvedObject"]["kind"] == "Pod" && event["involvedObject"]["name"] == name
        };
        let told: Vec<(String, String)> = events
            .iter()
            .filter(of_pod)
            .map(|event| {
                let reason = text(event, "/reason").unwrap_or_default();
                let part = text(event, "/involvedObject/fieldPath").unwrap_or_default();
                (reason.clone(), format!("{reason} {part}").trim().to_owned())
            })
            .collect();
        let ends = |reason: &str| matches!(reason, "Evicted" | "Killing" | "ExceededGracePeriod");
        let sentence = |(_, told): &(String, String)| told.clone();
        let (ended, begun): (Vec<_>, Vec<_>) = told.iter().partition(|(reason, _)| ends(reason));
        let evicted = evicted_events(events);
        // All that were made for this pod carry the same keys.
        let annotations: Option<&BTreeMap<String, String>> =
            evicted.iter().find(|event| event.pod == name).map(|event| &event.annotations);
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten().map(|condition| {
            let field = |field: &str| text(condition, field);
            (field("/type").unwrap_or_default(), field("/status").unwrap_or_default(), field("/reason"))
        });
        Self {
            phase: text(pod, "/status/phase").unwrap_or_default(),
            reason: text(pod, "/status/reason"),
            message: text(pod, "/status/message").map(|message| Said::of(&message)),
            annotations: annotations.into_iter().flat_map(BTreeMap::keys).cloned().collect(),
            starved: annotations.and_then(|all| all.get("starved_resource").cloned()),
            conditions: conditions.collect(),
            begun: begun.into_iter().map(sentence).collect(),
            ended: ended.into_iter().map(sentence).collect(),
        }
    }
}

impl Said {
    fn of(message: &str) -> Self {
        match message.parse() {
            Ok(EvictionMessage::NodePressure(pressure)) => Self::Pressure {
                resource: pressure.resource.to_string(),
                threshold: pressure.threshold.map(|threshold| threshold.quantity.to_string()),
                pod: pressure.pod.map(|pod| (pod.name, pod.request.to_string())),
                containers: pressure
                    .containers
                    .into_iter()
                    .map(|container| (container.name, container.request.to_string()))
                    .collect(),
            },
            Ok(_) => Self::Limit(message.to_owned()),
            Err(error) => panic!("{error}"),
        }
    }
}

fn text(object: &Value, path: &str) -> Option<String> {
    object.pointer(path).and_then(Value::as_str).map(str::to_owned)
}
