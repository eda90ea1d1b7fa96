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

/// A known bug of kubelets, with the test of whether an eviction matches it.
#[derive(Clone, Copy, Debug)]
pub struct BugPattern {
    /// Upstream issue as `owner/repository#number`; `None` if the bug is not reported.
    pub upstream: Option<&'static str>,
    /// Description of the bug.
    pub about: &'static str,
    /// The case that reproduces it: `evictlab run CASE`.
    pub case: &'static str,
    /// Returns why the bug matches an eviction; `None` if it does not.
    reason: fn(&BugMatcher<'_>) -> Option<String>,
}

/// The known bugs, in the order in which they are reported.
pub const BUG_PATTERNS: &[BugPattern] = &[
    BugPattern {
        upstream: Some("kubernetes/kubernetes#124938"),
        about: "Messages omit sidecars, including the one that used up the memory (fixed in 1.32).",
        case: "sidecars-are-named",
        reason: sidecars_omitted,
    },
    BugPattern {
        upstream: Some("kubernetes/kubernetes#123591"),
        about: "A pod without statistics is evicted before every other pod.",
        case: "pod-without-stats-goes-first",
        reason: pod_without_statistics,
    },
    BugPattern {
        upstream: Some("kubernetes/kubernetes#130439"),
        about: "For ephemeral-storage, the usage in the message covers writable layer and logs, but not emptyDir volumes.",
        case: "emptydir-missing-from-message",
        reason: emptydir_omitted,
    },
    BugPattern {
        upstream: None,
        about: "From 1.34 on, the message names the pod without comparing its usage with its request.",
        case: "pod-level-under-request",
        reason: pod_within_its_request,
    },
    BugPattern {
        upstream: Some("kubernetes/kubernetes#122160"),
        about: "The kubelet removes the containers of an evicted pod before it reads their termination state.",
        case: "container-statuses",
        reason: termination_state_lost,
    },
    BugPattern {
        upstream: Some("kubernetes/kubernetes#137992"),
        about: "A terminated pod keeps containers in state waiting.",
        case: "container-statuses",
        reason: container_still_waiting,
    },
    BugPattern {
        upstream: Some("kubernetes/kubernetes#118310"),
        about: "An evicted pod whose containers all exit with 0 gets phase Succeeded (since 1.27).",
        case: "success-hides-the-eviction",
        reason: evicted_pod_succeeded,
    },
    BugPattern {
        upstream: Some("kubernetes/kubernetes#132001"),
        about: "The kubelet's event client drops events about a pod after 25 events.",
        case: "evicted-event-lost-but-counted",
        reason: event_lost,
    },
];

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
        let matching = BUG_PATTERNS.iter().filter_map(|bug| {
            let BugPattern { upstream, about, case, reason } = *bug;
            Some(MatchingBug { upstream, about, reason: reason(self)?, case })
        });
        matching.collect()
    }

    fn pressure(&self) -> Option<&NodePressure> {
        match self.message {
            EvictionMessage::NodePressure(pressure) => Some(pressure),
            _ => None,
        }
    }
}

fn sidecars_omitted(eviction: &BugMatcher<'_>) -> Option<String> {
    let is_init =
        |report: &&ContainerReport| matches!(report.kind, Some(ContainerKind::Sidecar | ContainerKind::Init));
    let old = eviction.version.is_none_or(|version| !version.at_least(32));
    let names_containers =
        matches!(eviction.pressure()?.resource, Resource::Memory | Resource::EphemeralStorage);
    if !old || !names_containers || eviction.containers.iter().filter(is_init).any(|report| report.named) {
        return None;
    }
    let is_sidecar = |report: &&ContainerReport| report.kind == Some(ContainerKind::Sidecar);
    let sidecar = eviction.containers.iter().find(is_sidecar)?;
    let version = eviction.version.map_or_else(
        || "this applies if the kubelet is older than 1.32".to_owned(),
        |version| format!("the kubelet is {version}"),
    );
    Some(format!("Sidecar {} is not named; {version}.", sidecar.name))
}

fn pod_without_statistics(eviction: &BugMatcher<'_>) -> Option<String> {
    let statuses = &eviction.status.container_statuses;
    let never_ran = !statuses.is_empty() && statuses.iter().all(|status| status.never_ran());
    (never_ran && eviction.pressure()?.containers.is_empty())
        .then(|| "No container of the pod ever ran, and none is named.".to_owned())
}

fn emptydir_omitted(eviction: &BugMatcher<'_>) -> Option<String> {
    let pressure = eviction.pressure()?;
    let on_disk = eviction.pod?.spec.volumes.iter().find(|volume| {
        volume.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref().unwrap_or_default().is_empty())
    })?;
    let small = pressure.containers.iter().find(|offender| offender.usage.value() < SMALL_USAGE)?;
    (pressure.resource == Resource::EphemeralStorage).then(|| {
        format!(
            "The message states {} for container {}; the pod's emptyDir {} may contain the data that filled the disk.",
            small.usage, small.name, on_disk.name
        )
    })
}

fn pod_within_its_request(eviction: &BugMatcher<'_>) -> Option<String> {
    let pod = eviction.pressure()?.pod.as_ref().filter(|pod| pod.usage <= pod.request)?;
    Some(format!(
        "The message states \"larger consumption\", but {} is not above the request of {}.",
        pod.usage, pod.request
    ))
}

fn termination_state_lost(eviction: &BugMatcher<'_>) -> Option<String> {
    let lost = eviction.status.all_container_statuses().find(|status| {
        status.termination_reason() == Some("ContainerStatusUnknown") && !status.never_ran()
    })?;
    Some(format!(
        "Container {} is ContainerStatusUnknown with exit code 137, which may not be its real exit code.",
        lost.name
    ))
}

fn container_still_waiting(eviction: &BugMatcher<'_>) -> Option<String> {
    let over = matches!(eviction.status.phase.as_deref(), Some("Failed" | "Succeeded"));
    let mut statuses = eviction.status.all_container_statuses();
    let waiting = statuses.find(|status| over && status.state.waiting.is_some())?;
    Some(format!("Container {} is waiting, but the pod is terminated.", waiting.name))
}

fn evicted_pod_succeeded(eviction: &BugMatcher<'_>) -> Option<String> {
    (eviction.status.phase.as_deref() == Some("Succeeded"))
        .then(|| "The phase is Succeeded: controllers do not see the eviction.".to_owned())
}

fn event_lost(eviction: &BugMatcher<'_>) -> Option<String> {
    let is_evicted = eviction.status.reason.as_deref() == Some(EVICTED_REASON);
    (is_evicted && !eviction.has_evicted_event && eviction.has_other_events).then(|| {
        "The pod's status is Evicted and the input contains other events of the pod, but no Evicted event."
            .to_owned()
    })
}
