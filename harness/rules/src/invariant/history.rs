//! The usage of a container or pod over time, and bounds on it at the time of an event.

use jiff::{SignedDuration, Timestamp};

use crate::message;
use crate::pod::Pod;
use crate::summary::{MemoryStats, Sample};
use crate::threshold::Resource;

/// Usage in one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct UsagePoint {
    /// Time of the Summary, in whole seconds.
    polled: Option<Timestamp>,
    /// Time of the measurement; `None` for disk usage, which is a sum of measurements.
    measured: Option<Timestamp>,
    /// Start time of the container; `None` for a pod.
    started: Option<Timestamp>,
    /// Usage in bytes.
    value: i64,
}

/// Usage of one container or pod in all samples, oldest first.
#[derive(Clone, Debug)]
pub(super) struct UsageHistory(Vec<UsagePoint>);

impl UsageHistory {
    pub(super) fn of_container(samples: &[Sample], pod: &Pod, container: &str, resource: Resource) -> Self {
        let point = |sample: &Sample| {
            let stats = sample.pod(&pod.metadata.uid)?;
            let stats = stats.containers.iter().find(|stats| stats.name == container)?;
            let memory = stats.memory.as_ref().filter(|_| resource == Resource::Memory);
            Some(UsagePoint {
                polled: summary_time(sample),
                measured: memory.and_then(|memory| memory.time),
                started: stats.start_time,
                value: message::container_usage(stats, resource)?,
            })
        };
        Self(samples.iter().filter_map(point).collect())
    }

    pub(super) fn of_pod(samples: &[Sample], pod: &Pod) -> Self {
        let point = |sample: &Sample| {
            let memory = sample.pod(&pod.metadata.uid)?.memory.as_ref()?;
            let MemoryStats { time, working_set_bytes, .. } = memory;
            Some(UsagePoint {
                polled: summary_time(sample),
                measured: *time,
                started: None,
                value: (*working_set_bytes)?,
            })
        };
        Self(samples.iter().filter_map(point).collect())
    }

    /// Returns whether a sample shows this usage.
    pub(super) fn contains(&self, value: i64) -> bool {
        self.0.iter().any(|point| point.value == value)
    }

    /// Returns the greatest usage.
    pub(super) fn peak(&self) -> Option<i64> {
        self.0.iter().map(|point| point.value).max()
    }

    /// Returns the usage that the kubelet had cached at `event`, known if the samples before and
    /// after the event show the same measurement.
    pub(super) fn cached_at(&self, event: Timestamp) -> Option<i64> {
        let (before, after) = self.samples_around(event)?;
        let same =
            before.measured.is_some() && before.measured == after.measured && before.value == after.value;
        same.then_some(before.value)
    }

    /// Returns the usage around an event of a container that did not change: the last two
    /// measurements before the event and the first two after it show the same.
    pub(super) fn constant_around(&self, event: Timestamp) -> Option<i64> {
        let mut measurements: Vec<&UsagePoint> = self.0.iter().collect();
        measurements.dedup_by_key(|point| point.measured);
        let second = SignedDuration::from_secs(1);
        let is_before = |at: Timestamp| at.checked_add(second).is_ok_and(|at| at <= event);
        // Of the same second as the event, a measurement counts as neither, but must agree.
        let before = measurements.iter().rposition(|point| point.measured.is_some_and(is_before))?;
        let after = measurements.iter().position(|point| point.measured.is_some_and(|at| at > event))?;
        let around = measurements.get(before.checked_sub(1)?..after + 2)?;
        let value = around.first()?.value;
        around.iter().all(|point| point.value == value).then_some(value)
    }

    /// Returns the lesser usage of the samples before and after `event`, if the container did not
    /// restart in between.
    pub(super) fn minimum_around(&self, event: Timestamp) -> Option<i64> {
        let (before, after) = self.samples_around(event)?;
        (before.started.is_some() && before.started == after.started).then(|| before.value.min(after.value))
    }

    /// Returns the last sample before and the first sample after an event.
    ///
    /// Sample times are whole seconds: samples in the second of the event count as neither.
    fn samples_around(&self, event: Timestamp) -> Option<(&UsagePoint, &UsagePoint)> {
        let second = SignedDuration::from_secs(1);
        let before = self.0.iter().rfind(|point| {
            point.polled.and_then(|at| at.checked_add(second).ok()).is_some_and(|at| at <= event)
        })?;
        let after = self.0.iter().find(|point| point.polled.is_some_and(|at| at > event))?;
        Some((before, after))
    }
}

/// Returns the time of the Summary: of `rlimit`, the only statistics that are never cached.
fn summary_time(sample: &Sample) -> Option<Timestamp> {
    sample.node.rlimit.as_ref()?.time
}
