//! The decision when the observation of a case ends.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::pod::IMAGE_ERRORS;
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::{FsStats, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::live_state::LiveState;
use crate::objects::{ContainerStatusExt, RecordedEvent, RecordedPod};

/// Time for the last event and its duplicates to arrive after all expected evictions.
const EVENT_DELIVERY_TIME: Duration = Duration::from_millis(500);

/// Time after all expected evictions in which the kubelet would evict another pod: it waits for the
/// cleanup of the last one, and checks the thresholds again at once.
const NEXT_CHECK_TIME: Duration = Duration::from_secs(6);

/// The outcome that the case expects.
#[derive(Clone, Debug, Default)]
pub struct ExpectedOutcome {
    /// Pods expected to be evicted.
    pub evicted: Vec<String>,
    /// Pods that a kubelet with the known bug evicts instead.
    pub evicted_with_bug: Option<Vec<String>>,
    /// Pods whose eviction is never expected: it decides the case.
    pub never_evicted: Vec<String>,
    /// Containers that the Summary must list, by pod.
    pub summary: BTreeMap<String, Vec<String>>,
    /// True if the API is expected to reject an ephemeral container.
    pub refusal: bool,
    /// Value of the case's `until` expression, if it has one.
    pub until: Option<bool>,
    /// True if steps of the case are not done.
    pub steps_left: bool,
}

/// Inputs of [`LiveState::observation_end`] beside the state itself.
#[derive(Clone, Copy, Debug)]
pub struct EndInputs<'a> {
    /// The expected outcome.
    pub expected: &'a ExpectedOutcome,
    /// True if anything was recorded since the previous call.
    pub has_changes: bool,
    /// The latest sample of the Summary.
    pub latest_sample: Option<&'a Value>,
    /// True if the API rejected an ephemeral container.
    pub refused: bool,
    /// Time limits.
    pub limits: EndLimits,
}

/// Time limits of an observation.
#[derive(Clone, Copy, Debug)]
pub struct EndLimits {
    /// Maximum time without progress.
    pub stall_timeout: Duration,
    /// Time to keep observing after the outcome: for missing events, for the eviction that a known
    /// bug prevents, after an unexpected eviction, and for an image error to go away.
    pub settle_time: Duration,
}

/// A duration.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes the fields")]
struct DurationSchema {
    /// Whole seconds.
    secs: u64,
    /// Nanoseconds beyond the whole seconds.
    nanos: u32,
}

/// Reason why an observation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObservationEnd {
    /// The expected outcome, or that of the known bug, was observed.
    Outcome,
    /// A pod expected to be evicted terminated without eviction; the text names the pod.
    Died(String),
    /// A pod was evicted that the case does not expect to be evicted; the text names the pod.
    Unexpected(String),
    /// A pod of the expected outcome cannot start.
    Stuck,
    /// Nothing changed within the stall timeout.
    Stalled,
    /// This deadline of the case elapsed before the expected outcome.
    Deadline(#[schemars(with = "DurationSchema")] Duration),
}

impl ObservationEnd {
    /// Describes the end of an observation without the expected outcome; `None` for
    /// [`ObservationEnd::Outcome`].
    pub fn describe_failure(&self) -> Option<String> {
        match self {
            Self::Outcome => None,
            Self::Died(why) | Self::Unexpected(why) => Some(why.clone()),
            Self::Stuck => Some("a pod could not start".to_owned()),
            Self::Stalled => Some("nothing changed any more".to_owned()),
            Self::Deadline(deadline) => Some(format!("the deadline of {} s elapsed", deadline.as_secs())),
        }
    }
}

impl LiveState {
    /// Restarts the stall timeout, for progress that the state does not show, such as a step that
    /// waits for its time, and after an outage, during which progress was not observed.
    pub fn mark_progress(&mut self) {
        self.progress.last_change = Instant::now();
    }

    /// Returns the reason to end the observation now, or `None` to continue.
    pub fn observation_end(&mut self, inputs: &EndInputs<'_>) -> Option<ObservationEnd> {
        let now = Instant::now();
        let EndInputs { expected, limits, .. } = inputs;
        let needs_sample = inputs.has_changes || !expected.summary.is_empty();
        let sample = inputs.latest_sample.filter(|_| needs_sample);
        let sample = sample.and_then(|sample| Sample::deserialize(sample).ok());
        if inputs.has_changes {
            let fingerprint = self.fingerprint(sample.as_ref());
            if fingerprint != self.progress.fingerprint {
                (self.progress.fingerprint, self.progress.last_change) = (fingerprint, now);
            }
        }
        let is_stalled = now - self.progress.last_change >= limits.stall_timeout;
        if expected.steps_left || expected.until == Some(false) {
            return is_stalled.then_some(ObservationEnd::Stalled);
        }
        if expected.until == Some(true) {
            return Some(ObservationEnd::Outcome);
        }
        if self.all_evicted(&expected.evicted)
            && lists_containers(&expected.summary, sample.as_ref())
            && inputs.refused == expected.refusal
        {
            let has_events = expected.evicted.iter().all(|pod| self.has_evicted_event(pod));
            let settled = now - *self.progress.settled_since.get_or_insert(now);
            let others_remain = expected.never_evicted.iter().any(|pod| self.is_running(pod));
            let needed = if others_remain { NEXT_CHECK_TIME } else { EVENT_DELIVERY_TIME };
            return (has_events && settled >= needed || settled >= limits.settle_time)
                .then_some(ObservationEnd::Outcome);
        }
        if let Some(terminated) = expected.evicted.iter().find_map(|pod| self.terminated_otherwise(pod)) {
            return Some(ObservationEnd::Died(terminated));
        }
        if let Some(with_bug) = &expected.evicted_with_bug
            && with_bug != &expected.evicted
            && !with_bug.is_empty()
            && self.all_evicted(with_bug)
        {
            let since = *self.progress.settled_since.get_or_insert(now);
            return (now - since >= limits.settle_time).then_some(ObservationEnd::Outcome);
        }
        if let Some(pod) =
            expected.never_evicted.iter().find(|pod| self.all_evicted(std::slice::from_ref(pod)))
        {
            let since = *self.progress.settled_since.get_or_insert(now);
            let why = || format!("pod {pod} was evicted, which the case does not expect");
            return (now - since >= limits.settle_time).then(|| ObservationEnd::Unexpected(why()));
        }
        if expected.evicted.iter().chain(expected.summary.keys()).any(|pod| self.lacks_image(pod)) {
            if now - *self.progress.stuck_since.get_or_insert(now) >= limits.settle_time {
                return Some(ObservationEnd::Stuck);
            }
        } else {
            self.progress.stuck_since = None;
        }
        is_stalled.then_some(ObservationEnd::Stalled)
    }

    /// Reports whether each pod is evicted and all its containers have terminated.
    fn all_evicted(&self, pods: &[String]) -> bool {
        let is_evicted = |pod: &RecordedPod| pod.is_evicted() && pod.phase() == Some("Failed");
        pods.iter().all(|name| self.pods.get(name).is_some_and(is_evicted))
    }

    fn has_evicted_event(&self, pod: &str) -> bool {
        let uid = self.pods.get(pod).and_then(RecordedPod::uid);
        let is_about_pod =
            |event: &RecordedEvent| event.object_uid() == uid || event.object_name() == Some(pod);
        self.events.iter().any(|event| event.reason() == "Evicted" && is_about_pod(event))
    }

    /// Reports whether a container of a pod has an image that the kubelet cannot get. The kubelet
    /// retries, but images are loaded before the pods are created, hence a retry finds nothing new.
    fn lacks_image(&self, name: &str) -> bool {
        let Some(pod) = self.pods.get(name) else { return false };
        let mut reasons =
            pod.startup_container_statuses().filter_map(|status| status.waiting()?.reason.as_deref());
        reasons.any(|reason| IMAGE_ERRORS.contains(&reason))
    }

    /// Describes how a pod terminated without eviction.
    fn terminated_otherwise(&self, name: &str) -> Option<String> {
        let pod = self.pods.get(name)?;
        let phase = pod.phase().filter(|phase| ["Failed", "Succeeded"].contains(phase))?;
        if pod.is_evicted() {
            return None;
        }
        let reason = pod.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        Some(format!("pod {name} ended as {phase}{reason} and was not evicted"))
    }

    /// Returns a text that changes whenever the case makes progress: containers start or terminate,
    /// memory or disk usage changes, events arrive.
    fn fingerprint(&self, sample: Option<&Sample>) -> String {
        let mut text = String::new();
        for (name, pod) in &self.pods {
            text += &format!("{name} {:?} {:?};", pod.phase(), pod.reason());
            for status in pod.container_statuses() {
                let state = status.state_and_reason().map(|(state, _)| state);
                text += &format!("{} {state:?} {};", status.name, status.restart_count);
            }
        }
        text += &format!(
            "{} events, {} of the node, {} gone;",
            self.events.len(),
            self.node_history.len(),
            self.gone.len()
        );
        text + &sample.map(usage_fingerprint).unwrap_or_default()
    }
}

/// Reports whether the sample lists the containers of each pod.
fn lists_containers(summary: &BTreeMap<String, Vec<String>>, sample: Option<&Sample>) -> bool {
    summary.iter().all(|(pod, containers)| {
        let pods = sample.iter().flat_map(|sample| &sample.pods).filter(|stats| stats.pod_ref.name == *pod);
        let names: Vec<&str> =
            pods.flat_map(|stats| &stats.containers).map(|stats| stats.name.as_str()).collect();
        containers.iter().all(|container| names.contains(&container.as_str()))
    })
}

/// Returns the usage of the case's pods in coarse units, so that small fluctuations do not count as
/// progress. Sorted, because the kubelet lists pods and containers in arbitrary order.
fn usage_fingerprint(sample: &Sample) -> String {
    let units = |bytes: Option<i64>, unit: u64| u64::try_from(bytes.unwrap_or(0)).unwrap_or(0) / unit;
    let disk = |fs: Option<&FsStats>, unit: u64| units(fs.and_then(|fs| fs.used_bytes), unit);
    let mut used: Vec<String> = Vec::new();
    for pod in &sample.pods {
        let name = &pod.pod_ref.name;
        used.extend(pod.containers.iter().map(|container| {
            format!(
                "{name}/{} {} {} {};",
                container.name,
                units(container.working_set(), 4 * MIB),
                disk(container.rootfs.as_ref(), MIB),
                disk(container.logs.as_ref(), MIB)
            )
        }));
        // Pods of other namespaces have neither in a sample.
        if !pod.containers.is_empty() || pod.ephemeral_storage.is_some() {
            used.push(format!("{name} {};", disk(pod.ephemeral_storage.as_ref(), 4 * MIB)));
        }
    }
    used.sort();
    used.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;
    use serde_json::json;

    const LIMITS: EndLimits =
        EndLimits { stall_timeout: Duration::from_secs(40), settle_time: Duration::from_secs(12) };

    fn pod(name: &str, phase: &str, reason: Option<&str>) -> RecordedPod {
        let pod = json!({"metadata": {"name": name}, "status": {"phase": phase, "reason": reason}});
        Recorded::decode(pod).unwrap()
    }

    fn expected(evicted: &[&str], with_bug: Option<&[&str]>) -> ExpectedOutcome {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ExpectedOutcome {
            evicted: names(evicted),
            evicted_with_bug: with_bug.map(names),
            ..Default::default()
        }
    }

    /// The decision after a change.
    fn end(
        state: &mut LiveState,
        expected: &ExpectedOutcome,
        sample: Option<&Value>,
    ) -> Option<ObservationEnd> {
        state.observation_end(&EndInputs {
            expected,
            has_changes: true,
            latest_sample: sample,
            refused: false,
            limits: LIMITS,
        })
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn ends_with_the_event_or_after_the_settle_time() {
        let expected = expected(&["a"], None);
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("a", "Running", None));
        assert_eq!(end(&mut state, &expected, None), None);
        state.record_pod(0.0, pod("a", "Failed", Some("Evicted")));
        assert_eq!(end(&mut state, &expected, None), None, "its event may still arrive");
        let mut reported = state.clone();
        let event = json!({"metadata": {"uid": "1"}, "reason": "Evicted", "involvedObject": {"name": "a"}});
        reported.record_event(Recorded::decode(event).unwrap());
        pass(1).await;
        assert_eq!(end(&mut reported, &expected, None), Some(ObservationEnd::Outcome));
        assert_eq!(end(&mut state, &expected, None), None);
        pass(12).await;
        assert_eq!(end(&mut state, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn continues_while_the_kubelet_might_evict_another_pod() {
        let expected = ExpectedOutcome { never_evicted: vec!["b".to_owned()], ..expected(&["a"], None) };
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("a", "Failed", Some("Evicted")));
        let event = json!({"metadata": {"uid": "1"}, "reason": "Evicted", "involvedObject": {"name": "a"}});
        state.record_event(Recorded::decode(event).unwrap());
        let statuses = json!([{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]);
        let running = json!({"metadata": {"name": "b"}, "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Running", "containerStatuses": statuses}});
        state.record_pod(0.0, Recorded::decode(running).unwrap());
        assert_eq!(end(&mut state, &expected, None), None);
        pass(5).await;
        assert_eq!(end(&mut state, &expected, None), None, "the kubelet may check again");
        let mut evicted = state.clone();
        evicted.record_pod(5.0, pod("b", "Failed", Some("Evicted")));
        assert_eq!(end(&mut evicted, &expected, None), Some(ObservationEnd::Outcome), "the judge decides");
        pass(1).await;
        assert_eq!(end(&mut state, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_after_an_unexpected_eviction() {
        let expected = ExpectedOutcome { never_evicted: vec!["b".to_owned()], ..expected(&["a"], None) };
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("a", "Running", None));
        state.record_pod(0.0, pod("b", "Running", Some("Evicted")));
        pass(20).await;
        assert_eq!(end(&mut state, &expected, None), None, "it still runs");
        state.record_pod(20.0, pod("b", "Failed", Some("Evicted")));
        assert_eq!(end(&mut state, &expected, None), None, "others may follow");
        pass(13).await;
        let why = "pod b was evicted, which the case does not expect".to_owned();
        assert_eq!(end(&mut state, &expected, None), Some(ObservationEnd::Unexpected(why)));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_when_a_pod_terminates_without_eviction() {
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("a", "Failed", None));
        let died = "pod a ended as Failed and was not evicted".to_owned();
        assert_eq!(end(&mut state, &expected(&["a"], None), None), Some(ObservationEnd::Died(died)));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_after_the_settle_time_when_a_known_bug_shows() {
        let expected = expected(&["hog", "control"], Some(&["control"]));
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("hog", "Running", None));
        state.record_pod(0.0, pod("control", "Failed", Some("Evicted")));
        assert_eq!(end(&mut state, &expected, None), None);
        pass(13).await;
        assert_eq!(end(&mut state, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn continues_while_memory_usage_grows() {
        let expected = expected(&["a"], None);
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("a", "Running", None));
        let sample = |mib: u64| json!({"pods": [{"podRef": {"name": "a"}, "containers": [{"name": "c", "memory": {"workingSetBytes": mib * MIB}}]}]});
        for mib in (0..200).step_by(8) {
            assert_eq!(end(&mut state, &expected, Some(&sample(mib))), None);
            pass(39).await;
        }
        assert_eq!(end(&mut state, &expected, Some(&sample(192))), None);
        pass(40).await;
        assert_eq!(end(&mut state, &expected, Some(&sample(193))), Some(ObservationEnd::Stalled));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_on_persistent_image_errors_only() {
        let expected = expected(&["a"], None);
        let waiting = |reason: &str| {
            let statuses = json!([{"name": "c", "state": {"waiting": {"reason": reason}}}]);
            let status = json!({"phase": "Pending", "containerStatuses": statuses});
            Recorded::decode(json!({"metadata": {"name": "a"}, "status": status})).unwrap()
        };
        let mut state = LiveState::new();
        for (reason, seconds, ended) in [
            ("ContainerCreating", 0, None),
            ("ErrImagePull", 10, None),
            ("ContainerCreating", 10, None),
            ("ErrImagePull", 1, None),
            ("ImagePullBackOff", 11, None),
            ("ErrImageNeverPull", 1, Some(ObservationEnd::Stuck)),
        ] {
            pass(seconds).await;
            state.record_pod(0.0, waiting(reason));
            assert_eq!(end(&mut state, &expected, None), ended, "{reason}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn order_of_a_summary_is_not_progress() {
        let expected = expected(&["a"], None);
        let mut state = LiveState::new();
        state.record_pod(0.0, pod("a", "Running", None));
        let container = |name: &str, mib: u64| json!({"name": name, "rootfs": {"usedBytes": mib * MIB}});
        let (hog, idle) = (container("hog", 40), container("idle", 0));
        let sample =
            |containers: &[&Value]| json!({"pods": [{"podRef": {"name": "a"}, "containers": containers}]});
        assert_eq!(end(&mut state, &expected, Some(&sample(&[&hog, &idle]))), None);
        pass(40).await;
        assert_eq!(end(&mut state, &expected, Some(&sample(&[&idle, &hog]))), Some(ObservationEnd::Stalled));
    }
}
