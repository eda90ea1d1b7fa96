//! Progress events of a case.

use evictlab_evidence::{Observations, RecordedEvent};
use evictlab_judge::Phase;
use evictlab_report::RunEventKind;
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::{PodStats, Sample};
use serde::Deserialize;
use serde_json::Value;

use crate::case_runner::runner::CaseRunner;
use crate::pressure::plan::effective_threshold;
use crate::pressure::signal_status::available;

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

    /// Reports the container with the largest working set, and the distance to the threshold.
    pub(super) fn report_usage(&self, sample: &Value, observations: &Observations) {
        let Ok(pods) = Sample::deserialize(sample).map(|sample| sample.pods) else { return };
        let Some((name, working_set)) = largest_working_set(&pods) else { return };
        let distance = self.distance_to_threshold(sample, observations).unwrap_or_default();
        let text = format!("{name} at {}Mi{distance}", working_set / MIB);
        self.events.send(RunEventKind::CaseProgress { id: self.id.clone(), phase: Phase::Observe, text });
    }

    fn distance_to_threshold(&self, sample: &Value, observations: &Observations) -> Option<String> {
        let pressure = self.case.case.pressure.as_ref()?;
        let threshold = effective_threshold(pressure, observations.configz.json(), sample)?;
        let available = available(sample, pressure.signal)?;
        Some(match available.checked_sub(threshold) {
            Some(left) => format!(", {}Mi to go", left / MIB),
            None => format!(", {}Mi under the threshold", (threshold - available) / MIB),
        })
    }
}

/// Returns the name and the working set, in bytes, of the container that uses most memory.
fn largest_working_set(pods: &[PodStats]) -> Option<(&str, u64)> {
    let containers = pods.iter().flat_map(|pod| &pod.containers).map(|container| {
        let working_set = container.memory.as_ref().and_then(|memory| memory.working_set_bytes);
        (container.name.as_str(), working_set.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    });
    containers.max_by_key(|(_, working_set)| *working_set)
}
