//! Configuration of the kubelet for a case.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use evictlab_case::{Pressure, PressureMechanism, PressureSignal, QuantityText};
use evictlab_cluster::kubelet_config::{self, AppliedConfig};
use evictlab_cluster::wait::{self, Poll};
use evictlab_cluster::{has_condition, is_ready, last_heartbeat, taints};
use evictlab_evidence::{Observations, Recorded};
use evictlab_judge::Phase;
use evictlab_rules::format_go_duration;
use evictlab_rules::quantity::{MIB, Quantity};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value};

use crate::case_runner::error::CaseError;
use crate::case_runner::observation::collect::StateBefore;
use crate::case_runner::runner::CaseRunner;
use crate::node_access::exclusivity::Exclusivity;
use crate::pressure::signal_status::SignalStatus;
use crate::pressure::thresholds::{
    amount_beside_reservation, eviction_threshold, format_amount, hard_eviction_threshold, kube_reservation,
    overshoot, percentage, threshold_beside_reservation,
};
use crate::skip_reason::SkipReason;

/// Taint of a node that is not ready.
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// Taints of pressure conditions. The node controller removes them some time after the kubelet has
/// reported that the condition has ended.
const PRESSURE_TAINTS: [(&str, &str); 3] = [
    ("node.kubernetes.io/memory-pressure", "MemoryPressure"),
    ("node.kubernetes.io/disk-pressure", "DiskPressure"),
    ("node.kubernetes.io/pid-pressure", "PIDPressure"),
];
/// Limit for a node without progress until it is ready after a restart of its kubelet.
const NODE_READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of kubelet starts for a case until memory notifications work.
const MAX_KUBELET_STARTS: u32 = 3;
/// Maximum number of configurations for a case until the amounts that its thresholds are relative
/// to stay as they are.
const MAX_CONFIGURATIONS: u32 = 3;

impl CaseRunner<'_> {
    /// Configures the kubelet with a threshold by the node's available amount, and returns the
    /// state of the node before the pods. The kubelet of an external or shared node stays as it is.
    pub(super) async fn configure_node(
        &self,
        observations: &mut Observations,
    ) -> Result<StateBefore, CaseError> {
        let node = &self.run_node.node;
        if self.run_node.policy.is_some() {
            if self.run_node.may_cause_pressure(&self.case.case) {
                self.run_node.mark_dirty().await;
            }
            observations.configz = Recorded::decode(node.configz().await?)?;
        } else {
            self.configure_own_node(observations).await?;
        }
        let before = StateBefore {
            at: node.time_at(self.events.now()).await,
            summary: node.settled_summary().await?,
            metrics: node.settled_metrics().await?,
        };
        observations.summary_before = Recorded::decode(before.summary.clone())?;
        Ok(before)
    }

    async fn configure_own_node(&self, observations: &mut Observations) -> Result<(), CaseError> {
        let node = &self.run_node.node;
        let base = kubelet_config::base(node.cgroup);
        if self.exclusivity == Exclusivity::Shared {
            observations.kubelet_config_overrides = base;
            observations.configz = Recorded::decode(node.configz().await?)?;
            return Ok(());
        }
        let pressures: Vec<Pressure> = self.case.case.pressure.iter().flat_map(each_signal).collect();
        let mut measured = self.measure(&pressures).await?;
        let mut attempts = 1;
        loop {
            let mut changes = self.case.case.kubelet_config.clone();
            for (pressure, status) in pressures.iter().zip(&measured) {
                changes = self.with_pressure(pressure, *status, changes)?;
            }
            let config: Map<String, Value> = base.clone().into_iter().chain(changes).collect();
            self.run_node.mark_dirty().await;
            let applied = self.configure_kubelet(&config).await?;
            observations.configure_seconds = applied.seconds;
            observations.configz = Recorded::decode(applied.configz)?;
            observations.kubelet_config_overrides = config;
            let now = self.measure(&pressures).await?;
            let mut measurements = pressures.iter().zip(measured.iter().zip(&now));
            let change =
                measurements.find_map(|(pressure, (before, now))| describe_change(pressure, before, now));
            let Some(change) = change.filter(|_| attempts < MAX_CONFIGURATIONS) else { return Ok(()) };
            self.report_step(Phase::Configure, format!("{change}; setting the threshold again"));
            (measured, attempts) = (now, attempts + 1);
        }
    }

    /// Reads the status of each signal; asks the node only if there is one.
    async fn measure(&self, pressures: &[Pressure]) -> Result<Vec<SignalStatus>, CaseError> {
        if pressures.is_empty() {
            return Ok(Vec::new());
        }
        let summary = self.run_node.node.settled_summary().await?;
        let status = |pressure: &Pressure| SignalStatus::from_summary(&summary, pressure.signal);
        Ok(pressures.iter().map(status).collect())
    }

    /// Restarts the kubelet with a configuration and waits until the node is ready.
    ///
    /// A kubelet that missed its first synchronization receives memory notifications only after
    /// the next one, 10 s later. It is restarted again for a case that states
    /// `kernelMemcgNotification`; other cases have rarely crossed their threshold by then.
    async fn configure_kubelet(&self, config: &Map<String, Value>) -> Result<AppliedConfig, CaseError> {
        let node = &self.run_node.node;
        let is_on_memory = |pressure: &Pressure| pressure.signal == PressureSignal::MemoryAvailable;
        let stated = self.case.case.kubelet_config.get("kernelMemcgNotification");
        let needs_notification =
            stated == Some(&Value::Bool(true)) && self.case.case.pressure.as_ref().is_some_and(is_on_memory);
        let mut starts = 1;
        loop {
            let began = self.events.now();
            let applied = kubelet_config::configure(node, config).await?;
            self.wait_until_ready(began + applied.stopped_after).await?;
            let log = if needs_notification { node.kubelet_log(began).await? } else { None };
            let missed_first_sync = log.is_some_and(|log| kubelet_config::missed_first_sync(&log));
            if starts == MAX_KUBELET_STARTS || !missed_first_sync {
                return Ok(applied);
            }
            self.report_step(Phase::Configure, "the kubelet missed its first synchronization; restarting it");
            starts += 1;
        }
    }

    /// Waits until the kubelet that replaced one that exited at `since` has reported a ready node
    /// without the `not-ready` taint, so that the case does not observe the effects of the restart.
    async fn wait_until_ready(&self, since: Timestamp) -> Result<(), CaseError> {
        let node = &self.run_node.node;
        let poll = Duration::from_millis(200);
        let ready = wait::until(NODE_READY_TIMEOUT, poll, async || match node.object().await {
            Ok(object) => restart_effect(&object, since).map_or(Poll::Done(()), Poll::Pending),
            Err(error) => Poll::Pending(error.to_string()),
        });
        ready.await.map_err(|stalled| CaseError::NotReady { node: node.name.clone(), stalled })
    }

    /// Adds the case's thresholds or reservation to the configuration, for a node of this status.
    fn with_pressure(
        &self,
        pressure: &Pressure,
        status: SignalStatus,
        changes: Map<String, Value>,
    ) -> Result<Map<String, Value>, CaseError> {
        let signal = pressure.signal.as_str();
        let require = |quantity: Option<String>| {
            let node = self.run_node.node.name.clone();
            quantity.ok_or(CaseError::DistanceNotAvailable { node, signal })
        };
        let available = format_amount(pressure, status.available);
        if pressure.by == PressureMechanism::KubeReserved
            && let Some(resource) = pressure.signal.reservable_resource()
        {
            let reserved = require(kube_reservation(pressure, status))?;
            let changes = kubelet_config::with_reservation(changes, resource, &reserved);
            let text = format!("{signal} is {available}, kubeReserved {reserved}");
            let (changes, text) = match threshold_beside_reservation(pressure, status) {
                None => (changes, text),
                Some(threshold) => {
                    check_percentage(pressure, status)?;
                    let changes = kubelet_config::with_threshold(changes, signal, &threshold, None);
                    (changes, format!("{text}, threshold {threshold}"))
                }
            };
            self.report_step(Phase::Configure, text);
            return Ok(changes);
        }
        let threshold = require(eviction_threshold(pressure, status))?;
        let grace = pressure.soft_grace.map(|grace| format_go_duration(grace.get()));
        let changes = kubelet_config::with_threshold(changes, signal, &threshold, grace.as_deref());
        let changes = with_minimum_reclaim(pressure, status, changes);
        if pressure.hard_distance.is_none() {
            self.report_step(Phase::Configure, format!("{signal} is {available}, threshold {threshold}"));
            return Ok(changes);
        }
        let hard = require(hard_eviction_threshold(pressure, status))?;
        let text = format!("{signal} is {available}, soft threshold {threshold}, hard threshold {hard}");
        self.report_step(Phase::Configure, text);
        Ok(kubelet_config::with_threshold(changes, signal, &hard, None))
    }
}

/// Returns the configuration with the minimum reclaim of the signal in the notation of the
/// threshold.
fn with_minimum_reclaim(
    pressure: &Pressure,
    status: SignalStatus,
    mut changes: Map<String, Value>,
) -> Map<String, Value> {
    let signal = pressure.signal.as_str();
    let stated = changes.get_mut("evictionMinimumReclaim").and_then(|all| all.get_mut(signal));
    if let Some(stated) = stated
        && let Some(amount) = stated.as_str().and_then(|text| text.parse::<Quantity>().ok())
        && pressure.as_percentage
    {
        let amount = u64::try_from(amount.value()).unwrap_or_default();
        *stated = percentage(amount, status.capacity).into();
    }
    changes
}

/// Checks that a percentage of the pods' memory leaves room between the threshold and the limit of
/// their cgroup, where the kernel kills processes.
fn check_percentage(pressure: &Pressure, node: SignalStatus) -> Result<(), SkipReason> {
    const MIN_THRESHOLD: u64 = 35 * MIB;
    let amounts = [pressure.distance(), amount_beside_reservation(pressure)].map(u128::from);
    let most = amounts[0] * amounts[1] / u128::from(MIN_THRESHOLD);
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    if node.capacity > most { Err(SkipReason::MemoryTooLarge { has: node.capacity, most }) } else { Ok(()) }
}

/// Returns the pressure of a case on each of its signals. Beside a reservation, the other signals
/// have thresholds.
fn each_signal(pressure: &Pressure) -> Vec<Pressure> {
    let on = |(signal, distance): (&PressureSignal, &QuantityText)| {
        let (signal, distance) = (*signal, Some(distance.clone()));
        let by = PressureMechanism::Threshold;
        Pressure { signal, distance, by, also: BTreeMap::new(), ..pressure.clone() }
    };
    iter::once(pressure.clone()).chain(pressure.also.iter().map(on)).collect()
}

/// Describes a change of a signal that could put its threshold out of the ramp's reach, or let the
/// ramp begin beyond it: what an earlier case held may become free while the kubelet restarts.
fn describe_change(pressure: &Pressure, before: &SignalStatus, now: &SignalStatus) -> Option<String> {
    let tolerance = overshoot(pressure.signal) / 2;
    let change = |name: &str, before: u64, now: u64| {
        let [from, to] = [before, now].map(|amount| format_amount(pressure, amount));
        (before.abs_diff(now) > tolerance).then(|| format!("{name} has changed from {from} to {to}"))
    };
    change(pressure.signal.as_str(), before.available, now.available)
        .or_else(|| change("the memory of pods", before.used_by_pods, now.used_by_pods))
}

/// Returns the effect of a restart of the kubelet that remains on its node, if the kubelet before
/// it exited at `since`.
fn restart_effect(node: &Node, since: Timestamp) -> Option<String> {
    if !is_ready(node) {
        return Some("condition Ready is not True".to_owned());
    }
    // The last status of the kubelet before remains until the new one reports its own. Heartbeats
    // are in whole seconds, rounded down.
    if last_heartbeat(node).is_none_or(|heartbeat| heartbeat <= since) {
        return Some("the kubelet has not reported its status".to_owned());
    }
    let is_of_before = |key: &str| match PRESSURE_TAINTS.iter().find(|(taint, _)| *taint == key) {
        Some((_, condition)) => !has_condition(node, condition),
        None => key == NOT_READY_TAINT,
    };
    let remaining = taints(node).find(|taint| is_of_before(&taint.key));
    remaining.map(|taint| format!("taint {} remains", taint.key))
}

#[cfg(test)]
mod tests {
    use evictlab_rules::quantity::MIB;
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_threshold_out_of_reach_is_set_again() {
        let pressure: Pressure =
            serde_saphyr::from_str("{signal: memory.available, also: {pid.available: \"500\"}}").unwrap();
        let [memory, pids] = each_signal(&pressure).try_into().unwrap();
        let status = |available, used_by_pods| SignalStatus { available, capacity: 1 << 40, used_by_pods };
        let rows = [
            (&memory, status(16145 * MIB, 0), status(16190 * MIB, 0), None),
            (
                &memory,
                status(16145 * MIB, 0),
                status(16248 * MIB, 0),
                Some("memory.available has changed from 16145Mi to 16248Mi"),
            ),
            (
                &memory,
                status(16145 * MIB, 0),
                status(16045 * MIB, 0),
                Some("memory.available has changed from 16145Mi to 16045Mi"),
            ),
            (
                &memory,
                status(16145 * MIB, 90 * MIB),
                status(16145 * MIB, 0),
                Some("the memory of pods has changed from 90Mi to 0Mi"),
            ),
            (&pids, status(9000, 0), status(9300, 0), None),
            (&pids, status(9000, 0), status(9301, 0), Some("pid.available has changed from 9000 to 9301")),
        ];
        for (pressure, before, now, expected) in rows {
            assert_eq!(describe_change(pressure, &before, &now).as_deref(), expected);
        }
    }

    #[test]
    fn a_minimum_reclaim_has_the_notation_of_the_threshold() {
        let of = |yaml: &str, minimum: &str| {
            let pressure: Pressure = serde_saphyr::from_str(yaml).unwrap();
            let status = SignalStatus { available: 900 * MIB, capacity: 1000 * MIB, used_by_pods: 0 };
            let config = json!({"evictionMinimumReclaim": {"memory.available": minimum}});
            let config = with_minimum_reclaim(&pressure, status, config.as_object().unwrap().clone());
            config["evictionMinimumReclaim"]["memory.available"].as_str().unwrap().to_owned()
        };
        let percentage = "{signal: memory.available, as-percentage: true}";
        assert_eq!(of(percentage, "250Mi"), "25.000%");
        assert_eq!(of(percentage, "3%"), "3%");
        assert_eq!(of("{signal: memory.available}", "250Mi"), "250Mi");
        assert_eq!(of("{signal: pid.available, as-percentage: true}", "250Mi"), "250Mi");
    }

    #[test]
    fn thresholds_beside_a_reservation_are_thresholds() {
        let pressure: Pressure = serde_saphyr::from_str(
            "{signal: memory.available, by: kube-reserved, also: {nodefs.available: 1Gi}}",
        )
        .unwrap();
        let by: Vec<_> = each_signal(&pressure).iter().map(|one| one.by).collect();
        assert_eq!(by, [PressureMechanism::KubeReserved, PressureMechanism::Threshold]);
    }

    #[test]
    fn status_of_the_kubelet_before_does_not_count() {
        let node = |ready: &str, heartbeat: &str, pressure: &str, taints: &[&str]| -> Node {
            let taints: Vec<_> =
                taints.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
            from_value(json!({
                "spec": {"taints": taints},
                "status": {"conditions": [
                    {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat},
                    {"type": "MemoryPressure", "status": pressure},
                ]},
            }))
            .unwrap()
        };
        let stopped: Timestamp = "2026-11-25T07:03:40.2Z".parse().unwrap();
        // The kubelet before reported its last status while it was being stopped.
        let before = "2026-11-25T07:03:40Z";
        let after = "2026-11-25T07:03:41Z";
        let memory_pressure = "node.kubernetes.io/memory-pressure";
        for (node, expected) in [
            (node("True", before, "False", &[]), Some("the kubelet has not reported its status")),
            (node("False", after, "False", &[NOT_READY_TAINT]), Some("condition Ready is not True")),
            (
                node("True", after, "False", &[NOT_READY_TAINT]),
                Some("taint node.kubernetes.io/not-ready remains"),
            ),
            (
                node("True", after, "False", &[memory_pressure]),
                Some("taint node.kubernetes.io/memory-pressure remains"),
            ),
            // The threshold of the case is met already.
            (node("True", after, "True", &[memory_pressure]), None),
            (node("True", after, "False", &["example.com/own"]), None),
        ] {
            assert_eq!(restart_effect(&node, stopped).as_deref(), expected);
        }
    }
}
