//! Progress events of a case.

use evictlab_case::{Pressure, PressureSignal};
use evictlab_evidence::{Observations, RecordedEvent};
use evictlab_judge::Phase;
use evictlab_report::RunEventKind;
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::{NodeStats, PodStats, Sample};
use serde_json::Value;

use crate::case_runner::runner::CaseRunner;
use crate::pressure::plan::tested_threshold;
use crate::pressure::thresholds::format_amount;

impl CaseRunner<'_> {
    /// Reports a step of a phase.
    pub(super) fn report_step(&self, phase: Phase, text: impl Into<String>) {
        self.events.send(RunEventKind::CaseStep { id: self.id.clone(), phase, text: text.into() });
    }

    /// Reports a warning event.
    pub(super) fn report_warning(&self, event: &RecordedEvent) {
        if event.is_warning() {
            let object = event.object_name().unwrap_or_default();
            let (reason, message) = (event.reason(), event.message().trim_end());
            self.report_step(Phase::Observe, format!("{reason} {object}: {message}"));
        }
    }

    /// Reports the distance to the threshold, and the container with the largest working set unless
    /// the pressure is on another resource.
    pub(super) fn report_usage(&self, sample: &Sample, observations: &Observations) {
        let pressure = self.case.case.pressure.as_ref();
        let is_on_memory = pressure.is_none_or(|one| one.signal == PressureSignal::MemoryAvailable);
        let largest = largest_working_set(&sample.pods).filter(|_| is_on_memory);
        let largest = largest.map(|(name, working_set)| format!("{name} at {}Mi", working_set / MIB));
        let distance =
            pressure.and_then(|one| distance_to_threshold(one, observations.configz.json(), &sample.node));
        let parts: Vec<String> = largest.into_iter().chain(distance).collect();
        if parts.is_empty() {
            return;
        }
        let text = parts.join(", ");
        self.events.send(RunEventKind::CaseProgress { id: self.id.clone(), phase: Phase::Observe, text });
    }
}

/// Describes the distance of a node to the threshold of a case, in the unit of its signal.
fn distance_to_threshold(pressure: &Pressure, configz: &Value, node: &NodeStats) -> Option<String> {
    let tested = tested_threshold(pressure, configz, node)?;
    Some(match tested.available.checked_sub(tested.threshold) {
        Some(left) => format!("{} to go", format_amount(pressure, left)),
        None => {
            let beyond = format_amount(pressure, tested.threshold - tested.available);
            format!("{beyond} under the threshold")
        }
    })
}

/// Returns the name and the working set, in bytes, of the container that uses most memory.
fn largest_working_set(pods: &[PodStats]) -> Option<(&str, u64)> {
    let containers = pods.iter().flat_map(|pod| &pod.containers).map(|container| {
        let working_set = container.memory.as_ref().and_then(|memory| memory.working_set_bytes);
        (container.name.as_str(), working_set.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    });
    containers.max_by_key(|(_, working_set)| *working_set)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_distance_has_the_unit_of_the_signal() {
        let fs = |inodes: u64, bytes: u64| {
            json!({"fs": {
                "inodesFree": inodes, "inodes": 100_000,
                "availableBytes": bytes * MIB, "capacityBytes": 10_000 * MIB,
            }})
        };
        let configz = json!({"evictionHard": {"nodefs.inodesFree": "5%", "nodefs.available": "12.5%"}});
        let rows = [
            ("nodefs.inodesFree", fs(25_000, 1), "20000 to go"),
            ("nodefs.inodesFree", fs(4900, 1), "100 under the threshold"),
            ("nodefs.available", fs(1, 1750), "500Mi to go"),
            ("nodefs.available", fs(1, 1240), "10Mi under the threshold"),
        ];
        for (signal, node, expected) in rows {
            let pressure: Pressure = serde_saphyr::from_str(&format!("signal: {signal}")).unwrap();
            let stats: NodeStats = serde_json::from_value(node.clone()).unwrap();
            let text = distance_to_threshold(&pressure, &configz, &stats);
            assert_eq!(text.as_deref(), Some(expected), "{signal} {node}");
        }
    }
}
