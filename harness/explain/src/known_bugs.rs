//! Known bugs of kubelets that match an eviction. The cases that reproduce them refer to the same
//! upstream issues.

use evictlab_rules::message::{EVICTED_REASON, EvictionMessage, NodePressure};
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::MIB;
use evictlab_rules::threshold::Resource;

use crate::explanation::{ContainerKind, ContainerReport, MatchingBug};
use crate::objects::PodStatus;
use crate::stated_version::StatedVersion;

/// Usage in bytes below which a container of a pod with an emptyDir cannot have filled the disk by
/// its writable layer and logs.
const SMALL_USAGE: i64 = MIB as i64;

/// The eviction that known bugs are matched against.
pub(crate) struct BugMatcher<'a> {
    pub message: &'a EvictionMessage,
    pub containers: &'a [ContainerReport],
    pub pod: Option<&'a Pod>,
    pub status: &'a PodStatus,
    pub version: Option<&'a StatedVersion>,
    /// True if the input contains an Evicted event of the pod.
    pub has_evicted_event: bool,
    /// True if the input contains other kubelet events of the pod.
    pub has_other_events: bool,
}

impl BugMatcher<'_> {
    /// Returns the bugs that match.
    pub(crate) fn matches(&self) -> Vec<MatchingBug> {
        [
            self.sidecars_omitted(),
            self.pod_without_statistics(),
            self.emptydir_omitted(),
            self.pod_within_its_request(),
            self.termination_state_lost(),
            self.container_still_waiting(),
            self.evicted_pod_succeeded(),
            self.event_lost(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn pressure(&self) -> Option<&NodePressure> {
        match self.message {
            EvictionMessage::NodePressure(pressure) => Some(pressure),
            _ => None,
        }
    }

    fn sidecars_omitted(&self) -> Option<MatchingBug> {
        let is_init = |report: &&ContainerReport| {
            matches!(report.kind, Some(ContainerKind::Sidecar | ContainerKind::Init))
        };
        let old = self.version.is_none_or(|version| !version.at_least(32));
        let names_containers =
            matches!(self.pressure()?.resource, Resource::Memory | Resource::EphemeralStorage);
        if !old || !names_containers || self.containers.iter().filter(is_init).any(|report| report.named) {
            return None;
        }
        let is_sidecar = |report: &&ContainerReport| report.kind == Some(ContainerKind::Sidecar);
        let sidecar = self.containers.iter().find(is_sidecar)?;
        let version = self.version.map_or_else(
            || "this applies if the kubelet is older than 1.32".to_owned(),
            |version| format!("the kubelet is {version}"),
        );
        Some(MatchingBug {
            upstream: Some("kubernetes/kubernetes#124938"),
            about: "Messages omit sidecars, including the one that used up the memory (fixed in 1.32).",
            reason: format!("Sidecar {} is not named; {version}.", sidecar.name),
            case: "sidecars-are-named",
        })
    }

    fn pod_without_statistics(&self) -> Option<MatchingBug> {
        let statuses = &self.status.container_statuses;
        let never_ran = !statuses.is_empty() && statuses.iter().all(|status| status.never_ran());
        (never_ran && self.pressure()?.containers.is_empty()).then(|| MatchingBug {
            upstream: Some("kubernetes/kubernetes#123591"),
            about: "A pod without statistics is evicted before every other pod.",
            reason: "No container of the pod ever ran, and none is named.".to_owned(),
            case: "pod-without-stats-goes-first",
        })
    }

    fn emptydir_omitted(&self) -> Option<MatchingBug> {
        let pressure = self.pressure()?;
        let on_disk = self.pod?.spec.volumes.iter().find(|volume| {
            volume.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref().unwrap_or_default().is_empty())
        })?;
        let small = pressure.containers.iter().find(|offender| offender.usage.value() < SMALL_USAGE)?;
        (pressure.resource == Resource::EphemeralStorage).then(|| MatchingBug {
            upstream: Some("kubernetes/kubernetes#130439"),
            about: "For ephemeral-storage, the usage in the message covers writable layer and logs, but not emptyDir volumes.",
            reason: format!(
                "The message states {} for container {}; the pod's emptyDir {} may contain the data that filled the disk.",
                small.usage, small.name, on_disk.name
            ),
            case: "emptydir-missing-from-message",
        })
    }

    fn pod_within_its_request(&self) -> Option<MatchingBug> {
        let pod = self.pressure()?.pod.as_ref().filter(|pod| pod.usage <= pod.request)?;
        Some(MatchingBug {
            upstream: None,
            about: "From 1.34 on, the message names the pod without comparing its usage with its request.",
            reason: format!(
                "The message states \"larger consumption\", but {} is not above the request of {}.",
                pod.usage, pod.request
            ),
            case: "pod-level-under-request",
        })
    }

    fn termination_state_lost(&self) -> Option<MatchingBug> {
        let lost = self.status.all_container_statuses().find(|status| {
            status.termination_reason() == Some("ContainerStatusUnknown") && !status.never_ran()
        })?;
        Some(MatchingBug {
            upstream: Some("kubernetes/kubernetes#122160"),
            about: "The kubelet removes the containers of an evicted pod before it reads their termination state.",
            reason: format!(
                "Container {} is ContainerStatusUnknown with exit code 137, which may not be its real exit code.",
                lost.name
            ),
            case: "container-statuses",
        })
    }

    fn container_still_waiting(&self) -> Option<MatchingBug> {
        let over = matches!(self.status.phase.as_deref(), Some("Failed" | "Succeeded"));
        let mut statuses = self.status.all_container_statuses();
        let waiting = statuses.find(|status| over && status.state.waiting.is_some())?;
        Some(MatchingBug {
            upstream: Some("kubernetes/kubernetes#137992"),
            about: "A terminated pod keeps containers in state waiting.",
            reason: format!("Container {} is waiting, but the pod is terminated.", waiting.name),
            case: "container-statuses",
        })
    }

    fn evicted_pod_succeeded(&self) -> Option<MatchingBug> {
        (self.status.phase.as_deref() == Some("Succeeded")).then(|| MatchingBug {
            upstream: Some("kubernetes/kubernetes#118310"),
            about: "An evicted pod whose containers all exit with 0 gets phase Succeeded (since 1.27).",
            reason: "The phase is Succeeded: controllers do not see the eviction.".to_owned(),
            case: "success-hides-the-eviction",
        })
    }

    fn event_lost(&self) -> Option<MatchingBug> {
        let is_evicted = self.status.reason.as_deref() == Some(EVICTED_REASON);
        (is_evicted && !self.has_evicted_event && self.has_other_events).then(|| MatchingBug {
            upstream: Some("kubernetes/kubernetes#132001"),
            about: "The kubelet's event client drops events about a pod after 25 events.",
            reason: "The pod's status is Evicted and the input contains other events of the pod, but no Evicted event."
                .to_owned(),
            case: "evicted-event-lost-but-counted",
        })
    }
}
