//! Known bugs, by the marks that they leave in events and pods. The cases that show them have the same upstream issues.

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::EvictionMessage;
use evictlab_rules::pod::Pod;
use evictlab_rules::threshold::Resource;
use serde_json::Value;

use super::containers::never_ran;
use super::explanation::{Bug, ContainerTold, Kind};
use crate::observe::statuses;

/// Under this an emptyDir that matters was left out: what runtimes write for a container by themselves is less.
const TRIFLE: i64 = 1 << 20;

/// What the marks are looked for in.
pub(super) struct Marks<'a> {
    pub message: &'a EvictionMessage,
    pub containers: &'a [ContainerTold],
    pub pod: Option<&'a Pod>,
    pub status: &'a Value,
    pub version: Option<&'a KubeletVersion>,
    /// Whether an Evicted event of the pod is in the input.
    pub event: bool,
    /// Whether other events of the pod are.
    pub other_events: bool,
}

impl Marks<'_> {
    /// The bugs that fit.
    pub fn bugs(&self) -> Vec<Bug> {
        [
            self.sidecars_left_out(),
            self.without_statistics(),
            self.emptydir_left_out(),
            self.pod_within_its_request(),
            self.end_lost(),
            self.still_waiting(),
            self.succeeded(),
            self.event_lost(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn sidecars_left_out(&self) -> Option<Bug> {
        let early = |told: &&ContainerTold| matches!(told.kind, Some(Kind::Sidecar | Kind::Init));
        let old = self.version.is_none_or(|version| !version.at_least(32));
        let EvictionMessage::NodePressure(pressure) = self.message else { return None };
        let figures = matches!(pressure.resource, Resource::Memory | Resource::EphemeralStorage);
        if !old || !figures || self.containers.iter().filter(early).any(|told| told.named) {
            return None;
        }
        let sidecar = self.containers.iter().filter(early).find(|told| told.kind == Some(Kind::Sidecar))?;
        let version = self.version.map_or_else(
            || "if the kubelet is older than 1.32".to_owned(),
            |version| format!("the kubelet is {version}"),
        );
        Some(Bug {
            upstream: Some("kubernetes/kubernetes#124938"),
            about: "Messages leave out sidecars, the one that starved the node too (fixed in 1.32).",
            because: format!("{} is a sidecar and not named; {version}.", sidecar.name),
            case: "sidecars-are-named",
        })
    }

    fn without_statistics(&self) -> Option<Bug> {
        let EvictionMessage::NodePressure(pressure) = self.message else { return None };
        let statuses: Vec<&Value> = self.status["containerStatuses"].as_array()?.iter().collect();
        let never = !statuses.is_empty() && statuses.iter().all(|own| never_ran(own));
        (never && pressure.containers.is_empty()).then(|| Bug {
            upstream: Some("kubernetes/kubernetes#123591"),
            about: "A pod of which the kubelet has no statistics goes before every other.",
            because: "Nothing of this pod ever ran, and nobody is named.".to_owned(),
            case: "pod-without-stats-goes-first",
        })
    }

    fn emptydir_left_out(&self) -> Option<Bug> {
        let EvictionMessage::NodePressure(pressure) = self.message else { return None };
        let on_disk = self.pod?.spec.volumes.iter().find(|volume| {
            volume.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref().unwrap_or_default().is_empty())
        })?;
        let small = pressure.containers.iter().find(|offender| offender.usage.value() < TRIFLE)?;
        (pressure.resource == Resource::EphemeralStorage).then(|| Bug {
            upstream: Some("kubernetes/kubernetes#130439"),
            about: "For ephemeral-storage, the figure in the message is that of the writable layer and the logs; emptyDirs are left out.",
            because: format!(
                "{} is said to use {}, and the pod has the emptyDir {}: it may hold what filled the disk.",
                small.name, small.usage, on_disk.name
            ),
            case: "emptydir-missing-from-message",
        })
    }

    fn pod_within_its_request(&self) -> Option<Bug> {
        let EvictionMessage::NodePressure(pressure) = self.message else { return None };
        let pod = pressure.pod.as_ref().filter(|pod| pod.usage <= pod.request)?;
        Some(Bug {
            upstream: None,
            about: "From 1.34 on the sentence about the pod as a whole is written without a comparison.",
            because: format!(
                "It says \"larger consumption\", and {} is no more than the request of {}.",
                pod.usage, pod.request
            ),
            case: "pod-level-under-request",
        })
    }

    fn end_lost(&self) -> Option<Bug> {
        let lost = statuses(self.status).find(|own| {
            own["state"]["terminated"]["reason"] == "ContainerStatusUnknown" && !never_ran(own)
        })?;
        Some(Bug {
            upstream: Some("kubernetes/kubernetes#122160"),
            about: "The kubelet removes an evicted pod's containers before it has read how they ended.",
            because: format!(
                "{} is ContainerStatusUnknown with exit code 137, which need not be how it ended.",
                lost["name"].as_str().unwrap_or_default()
            ),
            case: "container-statuses",
        })
    }

    fn still_waiting(&self) -> Option<Bug> {
        let over = matches!(self.status["phase"].as_str(), Some("Failed" | "Succeeded"));
        let waits = statuses(self.status).find(|own| over && !own["state"]["waiting"].is_null())?;
        Some(Bug {
            upstream: Some("kubernetes/kubernetes#137992"),
            about: "A pod that is over keeps containers that wait to be created.",
            because: format!("{} waits, and the pod is over.", waits["name"].as_str().unwrap_or_default()),
            case: "container-statuses",
        })
    }

    fn succeeded(&self) -> Option<Bug> {
        (self.status["phase"] == "Succeeded").then(|| Bug {
            upstream: Some("kubernetes/kubernetes#118310"),
            about: "An evicted pod whose containers all exit with 0 counts as Succeeded (since 1.27).",
            because: "Its phase is Succeeded: controllers do not see that it was evicted.".to_owned(),
            case: "soft-waits-its-grace",
        })
    }

    fn event_lost(&self) -> Option<Bug> {
        (!self.event && self.other_events).then(|| Bug {
            upstream: Some("kubernetes/kubernetes#132001"),
            about: "The kubelet's client drops events about a pod of which it has sent 25 already.",
            because: "The pod's status says Evicted, other events of it are there, and no Evicted event is."
                .to_owned(),
            case: "evicted-event-lost-but-counted",
        })
    }
}
