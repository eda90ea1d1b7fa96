//! The decision when the observation of a case ends.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_evidence::{ContainerStatusExt, LiveState, ObservationEnd, RecordedEvent, RecordedPod};
use evictlab_rules::pod::IMAGE_ERROR_REASONS;
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::{FsStats, Sample};
use tokio::time::Instant;

/// Time for the last event and its duplicates to arrive after all expected evictions.
const EVENT_DELIVERY_TIME: Duration = Duration::from_millis(500);

/// Time after all expected evictions in which the kubelet would evict another pod: it waits for the
/// cleanup of the last one, and checks the thresholds again at once.
const NEXT_CHECK_TIME: Duration = Duration::from_secs(6);

/// The outcome that the case expects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedOutcome {
    /// Pods expected to be evicted.
    pub evicted: Vec<String>,
    /// Pods that a kubelet with the known bug evicts instead.
    pub evicted_with_bug: Option<Vec<String>>,
    /// Pods whose eviction is never expected: it decides the case.
    pub never_evicted: Vec<String>,
    /// Containers that the Summary must list, by pod.
    pub summary: BTreeMap<String, Vec<String>>,
    /// True if the API is expected to reject an ephemeral container.
    pub api_rejection: bool,
    /// Value of the case's `until` expression, if it has one.
    pub until: Option<bool>,
    /// True if steps of the case are not done.
    pub steps_left: bool,
    /// True if the case waits for nothing ([`Case::waits_for_nothing`]): it ends when nothing
    /// changes any more.
    pub waits_for_nothing: bool,
}

/// Inputs of [`EndCondition::check`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndInputs<'a> {
    /// The state of the case.
    pub state: &'a LiveState,
    /// The expected outcome.
    pub expected: &'a ExpectedOutcome,
    /// True if anything was recorded since the previous call.
    pub has_changes: bool,
    /// The latest sample of the Summary.
    pub latest_sample: Option<&'a Sample>,
    /// True if the API rejected an ephemeral container.
    pub api_rejected: bool,
}

/// Time limits of an observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndLimits {
    /// Maximum time without progress.
    pub stall_timeout: Duration,
    /// Time to keep observing after the outcome: for missing events, for the eviction that a known
    /// bug prevents, after an unexpected eviction, and for an image error to go away.
    pub settle_time: Duration,
}

/// An outcome after which the observation goes on for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settling {
    /// The expected one.
    Expected,
    /// That of the known bug.
    WithBug,
    /// An eviction that the case does not expect.
    Unexpected,
}

/// Decides when the observation of a case ends. In this order:
///
/// | state | end |
/// | --- | --- |
/// | steps are left, or `until` does not hold, and a pod was evicted that the case spares | [`ObservationEnd::Unexpected`] after the settle time |
/// | steps are left, or `until` does not hold | [`ObservationEnd::Stalled`] without progress |
/// | `until` holds | [`ObservationEnd::Outcome`] at once |
/// | the case waits for nothing | `Outcome` without progress |
/// | everything expected was observed | `Outcome` after the time for further events and evictions |
/// | an expected pod ended otherwise | [`ObservationEnd::Died`] at once |
/// | the outcome of the known bug was observed | `Outcome` after the settle time |
/// | a pod was evicted that the case spares | `Unexpected` after the settle time |
/// | an expected pod lacks its image | [`ObservationEnd::Stuck`] after the settle time |
/// | anything else | `Stalled` without progress |
#[derive(Clone, Debug)]
pub(crate) struct EndCondition {
    limits: EndLimits,
    last_change: Instant,
    fingerprint: String,
    /// The current outcome, with the time since which it has been the same.
    settling: Option<(Settling, Instant)>,
    stuck_since: Option<Instant>,
}

impl EndCondition {
    pub(crate) fn new(limits: EndLimits) -> Self {
        let last_change = Instant::now();
        Self { limits, last_change, fingerprint: String::new(), settling: None, stuck_since: None }
    }

    /// Restarts the stall timeout, for progress that the state does not show, such as a step that
    /// waits for its time.
    pub(crate) fn mark_progress(&mut self) {
        self.last_change = Instant::now();
    }

    /// Restarts the stall timeout after an outage, during which progress was not observed. The
    /// outage does not count as settle time either: what would have followed the outcome was not
    /// observed.
    pub(crate) fn mark_end_of_outage(&mut self, age: Duration) {
        let now = Instant::now();
        self.mark_progress();
        let of_outcome = self.settling.as_mut().map(|(_, since)| since);
        for since in of_outcome.into_iter().chain(&mut self.stuck_since) {
            *since = now.min(*since + age);
        }
    }

    /// Returns the reason to end the observation now, or `None` to continue.
    pub(crate) fn check(&mut self, inputs: &EndInputs<'_>) -> Option<ObservationEnd> {
        let now = Instant::now();
        let EndInputs { state, expected, .. } = *inputs;
        let sample = inputs.latest_sample;
        if inputs.has_changes {
            let fingerprint = fingerprint(state, sample);
            if fingerprint != self.fingerprint {
                (self.fingerprint, self.last_change) = (fingerprint, now);
            }
        }
        let is_stalled = now - self.last_change >= self.limits.stall_timeout;
        let outcome = outcome(inputs, sample);
        let settled = self.settled(outcome, now);
        let is_settled = settled >= self.limits.settle_time;
        let is_stuck = self.is_stuck(inputs, now);
        let stalled = is_stalled.then_some(ObservationEnd::Stalled);
        let unexpected = || unexpected_eviction(inputs).filter(|_| is_settled).map(describe_unexpected);
        if expected.steps_left || expected.until == Some(false) {
            return unexpected().or(stalled);
        }
        if expected.until == Some(true) {
            return Some(ObservationEnd::Outcome);
        }
        if expected.waits_for_nothing {
            return is_stalled.then_some(ObservationEnd::Outcome);
        }
        if outcome == Some(Settling::Expected) {
            let has_events = expected.evicted.iter().all(|pod| has_evicted_event(state, pod));
            let others_remain = expected.never_evicted.iter().any(|pod| state.is_running(pod));
            let needed = if others_remain { NEXT_CHECK_TIME } else { EVENT_DELIVERY_TIME };
            return (has_events && settled >= needed || is_settled).then_some(ObservationEnd::Outcome);
        }
        if let Some(terminated) = expected.evicted.iter().find_map(|pod| terminated_otherwise(state, pod)) {
            return Some(ObservationEnd::Died(terminated));
        }
        if outcome == Some(Settling::WithBug) {
            return is_settled.then_some(ObservationEnd::Outcome);
        }
        unexpected().or(is_stuck.then_some(ObservationEnd::Stuck)).or(stalled)
    }

    /// Returns the time for which the outcome has been the same; zero without an outcome. An
    /// outcome that ceased and is observed again, such as that of a pod that was replaced, is a new
    /// one.
    fn settled(&mut self, outcome: Option<Settling>, now: Instant) -> Duration {
        let since = match self.settling {
            Some((before, since)) if outcome == Some(before) => since,
            _ => now,
        };
        self.settling = outcome.map(|outcome| (outcome, since));
        now - since
    }

    /// Returns whether a pod of the expected outcome has lacked its image for the settle time.
    fn is_stuck(&mut self, inputs: &EndInputs<'_>, now: Instant) -> bool {
        let EndInputs { state, expected, .. } = *inputs;
        let mut pods = expected.evicted.iter().chain(expected.summary.keys());
        let lacks_image = pods.any(|pod| lacks_image(state, pod));
        self.stuck_since = lacks_image.then(|| self.stuck_since.unwrap_or(now));
        self.stuck_since.is_some_and(|since| now - since >= self.limits.settle_time)
    }
}

/// Returns the present outcome. While the case waits for a step or for its end condition, only an
/// unexpected eviction is one.
fn outcome(inputs: &EndInputs<'_>, sample: Option<&Sample>) -> Option<Settling> {
    let EndInputs { state, expected, .. } = *inputs;
    let is_waiting = expected.steps_left || expected.until == Some(false);
    let is_expected = || {
        all_evicted(state, &expected.evicted)
            && lists_containers(&expected.summary, sample)
            && inputs.api_rejected == expected.api_rejection
    };
    let has_bug = |with_bug: &Vec<String>| {
        with_bug != &expected.evicted && !with_bug.is_empty() && all_evicted(state, with_bug)
    };
    if !is_waiting && is_expected() {
        Some(Settling::Expected)
    } else if !is_waiting && expected.evicted_with_bug.as_ref().is_some_and(has_bug) {
        Some(Settling::WithBug)
    } else {
        unexpected_eviction(inputs).map(|_| Settling::Unexpected)
    }
}

/// Returns a pod that was evicted and that the case spares: nothing that follows changes the
/// verdict.
fn unexpected_eviction<'a>(inputs: &EndInputs<'a>) -> Option<&'a String> {
    let is_evicted = |pod: &&String| all_evicted(inputs.state, std::slice::from_ref(*pod));
    inputs.expected.never_evicted.iter().find(is_evicted)
}

fn describe_unexpected(pod: &String) -> ObservationEnd {
    ObservationEnd::Unexpected(format!("pod {pod} was evicted, which the case does not expect"))
}

/// Returns whether each pod is evicted and all its containers have terminated.
fn all_evicted(state: &LiveState, pods: &[String]) -> bool {
    let is_evicted = |pod: &RecordedPod| pod.is_evicted() && pod.phase() == Some("Failed");
    pods.iter().all(|name| state.pods.get(name).is_some_and(is_evicted))
}

fn has_evicted_event(state: &LiveState, pod: &str) -> bool {
    let uid = state.pods.get(pod).and_then(RecordedPod::uid);
    let is_about_pod = |event: &RecordedEvent| match (event.object_uid(), uid) {
        (Some(event_uid), Some(uid)) => event_uid == uid,
        // An earlier pod of the same name has another UID.
        _ => event.object_name() == Some(pod),
    };
    state.events.iter().any(|event| event.is_eviction() && is_about_pod(event))
}

/// Returns whether a container of a pod has an image that the kubelet cannot get. The kubelet
/// retries, but images are loaded before the pods are created, hence a retry finds nothing new.
fn lacks_image(state: &LiveState, name: &str) -> bool {
    let Some(pod) = state.pods.get(name) else { return false };
    let mut reasons =
        pod.startup_container_statuses().filter_map(|status| status.waiting()?.reason.as_deref());
    reasons.any(|reason| IMAGE_ERROR_REASONS.contains(&reason))
}

/// Describes how a pod terminated without eviction.
fn terminated_otherwise(state: &LiveState, name: &str) -> Option<String> {
    let pod = state.pods.get(name)?;
    let phase = pod.phase().filter(|phase| ["Failed", "Succeeded"].contains(phase))?;
    if pod.is_evicted() {
        return None;
    }
    // Its reason may be that of an eviction.
    if pod.is_rejected() {
        return Some(format!("pod {name} was rejected at admission"));
    }
    let reason = pod.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
    Some(format!("pod {name} ended as {phase}{reason} and was not evicted"))
}

/// Returns a text that changes whenever the case makes progress: containers start or terminate,
/// memory or disk usage changes, events arrive.
fn fingerprint(state: &LiveState, sample: Option<&Sample>) -> String {
    let mut text = String::new();
    for (name, pod) in &state.pods {
        text += &format!("{name} {:?} {:?};", pod.phase(), pod.reason());
        for status in pod.container_statuses() {
            let state = status.state_and_reason().map(|(state, _)| state);
            text += &format!("{} {state:?} {};", status.name, status.restart_count);
        }
    }
    text += &format!(
        "{} events, {} of the node, {} gone;",
        state.events.len(),
        state.node_history.len(),
        state.gone.len()
    );
    text + &sample.map(usage_fingerprint).unwrap_or_default()
}

/// Returns whether the sample lists the containers of each pod.
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
    use evictlab_evidence::Recorded;
    use serde_json::{Value, json};

    const LIMITS: EndLimits =
        EndLimits { stall_timeout: Duration::from_secs(40), settle_time: Duration::from_secs(12) };

    #[derive(Clone)]
    struct Lab {
        state: LiveState,
        condition: EndCondition,
    }

    impl Lab {
        fn new() -> Self {
            Self { state: LiveState::new(), condition: EndCondition::new(LIMITS) }
        }
    }

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

    fn decoded(sample: Value) -> Sample {
        serde_json::from_value(sample).unwrap()
    }

    /// The decision after a change.
    fn end(lab: &mut Lab, expected: &ExpectedOutcome, sample: Option<&Sample>) -> Option<ObservationEnd> {
        lab.condition.check(&EndInputs {
            state: &lab.state,
            expected,
            has_changes: true,
            latest_sample: sample,
            api_rejected: false,
        })
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn ends_with_the_event_or_after_the_settle_time() {
        let expected = expected(&["a"], None);
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Running", None));
        assert_eq!(end(&mut lab, &expected, None), None);
        lab.state.record_pod(0.0, pod("a", "Failed", Some("Evicted")));
        assert_eq!(end(&mut lab, &expected, None), None, "its event may still arrive");
        let mut reported = lab.clone();
        let event = json!({"metadata": {"uid": "1"}, "reason": "Evicted", "involvedObject": {"name": "a"}});
        reported.state.record_event(Recorded::decode(event).unwrap());
        pass(1).await;
        assert_eq!(end(&mut reported, &expected, None), Some(ObservationEnd::Outcome));
        assert_eq!(end(&mut lab, &expected, None), None);
        pass(12).await;
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn continues_while_the_kubelet_might_evict_another_pod() {
        let expected = ExpectedOutcome { never_evicted: vec!["b".to_owned()], ..expected(&["a"], None) };
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Failed", Some("Evicted")));
        let event = json!({"metadata": {"uid": "1"}, "reason": "Evicted", "involvedObject": {"name": "a"}});
        lab.state.record_event(Recorded::decode(event).unwrap());
        let statuses = json!([{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]);
        let running = json!({"metadata": {"name": "b"}, "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Running", "containerStatuses": statuses}});
        lab.state.record_pod(0.0, Recorded::decode(running).unwrap());
        assert_eq!(end(&mut lab, &expected, None), None);
        pass(5).await;
        assert_eq!(end(&mut lab, &expected, None), None, "the kubelet may check again");
        let mut evicted = lab.clone();
        evicted.state.record_pod(5.0, pod("b", "Failed", Some("Evicted")));
        assert_eq!(end(&mut evicted, &expected, None), Some(ObservationEnd::Outcome), "the judge decides");
        pass(1).await;
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_after_an_unexpected_eviction() {
        let expected = ExpectedOutcome { never_evicted: vec!["b".to_owned()], ..expected(&["a"], None) };
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Running", None));
        lab.state.record_pod(0.0, pod("b", "Running", Some("Evicted")));
        pass(20).await;
        assert_eq!(end(&mut lab, &expected, None), None, "it still runs");
        lab.state.record_pod(20.0, pod("b", "Failed", Some("Evicted")));
        assert_eq!(end(&mut lab, &expected, None), None, "others may follow");
        pass(13).await;
        let why = "pod b was evicted, which the case does not expect".to_owned();
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Unexpected(why)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unexpected_eviction_ends_the_wait_for_a_step() {
        let never_evicted = vec!["b".to_owned()];
        let expected = ExpectedOutcome { never_evicted, steps_left: true, ..expected(&["a"], None) };
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("b", "Failed", Some("Evicted")));
        assert_eq!(end(&mut lab, &expected, None), None, "others may follow");
        pass(12).await;
        let why = "pod b was evicted, which the case does not expect".to_owned();
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Unexpected(why)));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_when_a_pod_terminates_without_eviction() {
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Failed", None));
        let died = "pod a ended as Failed and was not evicted".to_owned();
        assert_eq!(end(&mut lab, &expected(&["a"], None), None), Some(ObservationEnd::Died(died)));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_after_the_settle_time_when_a_known_bug_shows() {
        let expected = expected(&["hog", "control"], Some(&["control"]));
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("hog", "Running", None));
        lab.state.record_pod(0.0, pod("control", "Failed", Some("Evicted")));
        assert_eq!(end(&mut lab, &expected, None), None);
        pass(13).await;
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Outcome));
    }

    /// The outcome ceases when a pod is replaced, or when a Summary lacks a container.
    #[tokio::test(start_paused = true)]
    async fn the_settle_time_begins_again_after_an_interruption_of_the_outcome() {
        let never_evicted =
            || ExpectedOutcome { never_evicted: vec!["b".to_owned()], ..expected(&["a"], None) };
        // The outcome is that of the first pod; `replaced` ends it.
        let rows = [
            (expected(&["a"], None), "a"),
            (expected(&["a", "b"], Some(&["b"])), "b"),
            (never_evicted(), "b"),
            (ExpectedOutcome { steps_left: true, ..never_evicted() }, "b"),
        ];
        for (expected, name) in rows {
            let mut lab = Lab::new();
            let mut seen = async |seconds: u64, phase: &str, reason: Option<&str>| {
                pass(seconds).await;
                lab.state.record_pod(0.0, pod(name, phase, reason));
                end(&mut lab, &expected, None).is_some()
            };
            let ends = [
                seen(0, "Failed", Some("Evicted")).await,
                seen(11, "Failed", Some("Evicted")).await,
                seen(0, "Running", None).await,
                seen(5, "Failed", Some("Evicted")).await,
                seen(11, "Failed", Some("Evicted")).await,
                seen(1, "Failed", Some("Evicted")).await,
            ];
            assert_eq!(ends, [false, false, false, false, false, true], "{expected:?}");
        }
    }

    /// During an outage, nothing after the outcome is observed.
    #[tokio::test(start_paused = true)]
    async fn an_outage_is_no_settle_time() {
        let waiting = json!({"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}});
        let status = json!({"phase": "Pending", "containerStatuses": [waiting]});
        let stuck = Recorded::decode(json!({"metadata": {"name": "a"}, "status": status})).unwrap();
        for (pod, ended) in
            [(pod("a", "Failed", Some("Evicted")), ObservationEnd::Outcome), (stuck, ObservationEnd::Stuck)]
        {
            let expected = expected(&["a"], None);
            let mut lab = Lab::new();
            lab.state.record_pod(0.0, pod);
            assert_eq!(end(&mut lab, &expected, None), None);
            pass(20).await;
            lab.condition.mark_end_of_outage(Duration::from_secs(15));
            assert_eq!(end(&mut lab, &expected, None), None, "5 s before the outage");
            pass(6).await;
            assert_eq!(end(&mut lab, &expected, None), None);
            pass(1).await;
            assert_eq!(end(&mut lab, &expected, None), Some(ended));
            // An outage that began before the outcome.
            lab.condition.mark_end_of_outage(Duration::from_secs(100));
            assert_eq!(end(&mut lab, &expected, None), None);
        }
    }

    /// The reason and the event of a rejection at admission are those of an eviction.
    #[tokio::test(start_paused = true)]
    async fn a_rejection_is_not_an_eviction() {
        let message = "The node had condition: [MemoryPressure]. ";
        let rejected = |name: &str| -> RecordedPod {
            let status = json!({"phase": "Failed", "reason": "Evicted", "message": format!("Pod was rejected: {message}")});
            Recorded::decode(json!({"metadata": {"name": name}, "status": status})).unwrap()
        };
        let event = json!({"metadata": {"uid": "1"}, "reason": "Evicted", "message": message, "involvedObject": {"name": "a"}});
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, rejected("a"));
        lab.state.record_event(Recorded::decode(event).unwrap());
        assert!(!has_evicted_event(&lab.state, "a"));
        let died = ObservationEnd::Died("pod a was rejected at admission".to_owned());
        assert_eq!(end(&mut lab, &expected(&["a"], None), None), Some(died));

        let expected = ExpectedOutcome { never_evicted: vec!["a".to_owned()], ..expected(&["b"], None) };
        lab.state.record_pod(0.0, pod("b", "Running", None));
        for seconds in [0, 13] {
            pass(seconds).await;
            assert_eq!(end(&mut lab, &expected, None), None, "after {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn continues_while_memory_usage_grows() {
        let expected = expected(&["a"], None);
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Running", None));
        let sample = |mib: u64| {
            let container = json!({"name": "c", "memory": {"workingSetBytes": mib * MIB}});
            decoded(json!({"pods": [{"podRef": {"name": "a"}, "containers": [container]}]}))
        };
        for mib in (0..200).step_by(8) {
            assert_eq!(end(&mut lab, &expected, Some(&sample(mib))), None);
            pass(39).await;
        }
        assert_eq!(end(&mut lab, &expected, Some(&sample(192))), None);
        pass(40).await;
        assert_eq!(end(&mut lab, &expected, Some(&sample(193))), Some(ObservationEnd::Stalled));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_on_persistent_image_errors_only() {
        let expected = expected(&["a"], None);
        let waiting = |reason: &str| {
            let statuses = json!([{"name": "c", "state": {"waiting": {"reason": reason}}}]);
            let status = json!({"phase": "Pending", "containerStatuses": statuses});
            Recorded::decode(json!({"metadata": {"name": "a"}, "status": status})).unwrap()
        };
        let mut lab = Lab::new();
        for (reason, seconds, ended) in [
            ("ContainerCreating", 0, None),
            ("ErrImagePull", 10, None),
            ("ContainerCreating", 10, None),
            ("ErrImagePull", 1, None),
            ("ImagePullBackOff", 11, None),
            ("ErrImageNeverPull", 1, Some(ObservationEnd::Stuck)),
        ] {
            pass(seconds).await;
            lab.state.record_pod(0.0, waiting(reason));
            assert_eq!(end(&mut lab, &expected, None), ended, "{reason}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn order_of_a_summary_is_not_progress() {
        let expected = expected(&["a"], None);
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Running", None));
        let container = |name: &str, mib: u64| json!({"name": name, "rootfs": {"usedBytes": mib * MIB}});
        let (hog, idle) = (container("hog", 40), container("idle", 0));
        let sample = |containers: [&Value; 2]| {
            decoded(json!({"pods": [{"podRef": {"name": "a"}, "containers": containers}]}))
        };
        assert_eq!(end(&mut lab, &expected, Some(&sample([&hog, &idle]))), None);
        pass(40).await;
        assert_eq!(end(&mut lab, &expected, Some(&sample([&idle, &hog]))), Some(ObservationEnd::Stalled));
    }

    #[tokio::test(start_paused = true)]
    async fn a_case_that_waits_for_nothing_ends_when_nothing_changes_any_more() {
        let expected = ExpectedOutcome { waits_for_nothing: true, ..expected(&[], None) };
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("a", "Pending", None));
        assert_eq!(end(&mut lab, &expected, None), None);
        pass(39).await;
        lab.state.record_pod(39.0, pod("a", "Running", None));
        assert_eq!(end(&mut lab, &expected, None), None, "it has just started");
        pass(39).await;
        assert_eq!(end(&mut lab, &expected, None), None, "it may still be evicted");
        pass(1).await;
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_bugs_outcome_does_not_count_for_the_expected_one() {
        let mut expected = expected(&["hog", "control"], Some(&["control"]));
        expected.never_evicted.push("other".to_owned());
        let mut lab = Lab::new();
        lab.state.record_pod(0.0, pod("hog", "Running", None));
        lab.state.record_pod(0.0, pod("other", "Running", None));
        lab.state.record_pod(0.0, pod("control", "Failed", Some("Evicted")));
        assert_eq!(end(&mut lab, &expected, None), None);
        pass(11).await;
        lab.state.record_pod(11.0, pod("hog", "Failed", Some("Evicted")));
        assert_eq!(end(&mut lab, &expected, None), None, "the kubelet may evict another pod");
        pass(11).await;
        assert_eq!(end(&mut lab, &expected, None), None, "the events may still arrive");
        pass(1).await;
        assert_eq!(end(&mut lab, &expected, None), Some(ObservationEnd::Outcome));
    }

    #[tokio::test(start_paused = true)]
    async fn the_event_of_an_earlier_pod_of_the_same_name_does_not_count() {
        let expected = expected(&["a"], None);
        let mut lab = Lab::new();
        let evicted = json!({"metadata": {"name": "a", "uid": "2"}, "status": {"phase": "Failed", "reason": "Evicted"}});
        lab.state.record_pod(0.0, Recorded::decode(evicted).unwrap());
        let event = json!({"metadata": {"uid": "1"}, "reason": "Evicted",
            "involvedObject": {"name": "a", "uid": "1"}});
        lab.state.record_event(Recorded::decode(event).unwrap());
        assert_eq!(end(&mut lab, &expected, None), None);
        pass(1).await;
        assert_eq!(end(&mut lab, &expected, None), None, "its own event may still arrive");
    }
}
