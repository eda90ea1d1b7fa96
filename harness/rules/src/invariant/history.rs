//! A figure through the samples, and what is sure of it at the time of an event.

use jiff::{SignedDuration, Timestamp};

use crate::message;
use crate::pod::{MemoryStats, Pod, Sample};
use crate::threshold::Resource;

/// A figure of one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// When the Summary was made, in whole seconds.
    polled: Option<Timestamp>,
    /// When the figure was measured; none where it has several parts.
    measured: Option<Timestamp>,
    /// When the container started.
    started: Option<Timestamp>,
    value: i64,
}

/// One container's (or one pod's) usage through the samples.
#[derive(Clone, Debug)]
pub(super) struct History(Vec<Point>);

impl History {
    pub(super) fn of_container(samples: &[Sample], pod: &Pod, container: &str, resource: Resource) -> Self {
        let point = |sample: &Sample| {
            let stats = sample.pod(&pod.metadata.uid)?;
            let stats = stats.containers.iter().find(|stats| stats.name == container)?;
            let memory = stats.memory.as_ref().filter(|_| resource == Resource::Memory);
            Some(Point {
                polled: polled(sample),
                measured: memory.and_then(|memory| memory.time),
                started: stats.start_time,
                value: message::usage(stats, resource)?,
            })
        };
        Self(samples.iter().filter_map(point).collect())
    }

    pub(super) fn of_pod(samples: &[Sample], pod: &Pod) -> Self {
        let point = |sample: &Sample| {
            let memory = sample.pod(&pod.metadata.uid)?.memory.as_ref()?;
            let MemoryStats { time, working_set_bytes, .. } = memory;
            Some(Point {
                polled: polled(sample),
                measured: *time,
                started: None,
                value: (*working_set_bytes)?,
            })
        };
        Self(samples.iter().filter_map(point).collect())
    }

    pub(super) fn contains(&self, value: i64) -> bool {
        self.0.iter().any(|point| point.value == value)
    }

    /// The greatest figure.
    pub(super) fn peak(&self) -> Option<i64> {
        self.0.iter().map(|point| point.value).max()
    }

    /// The figure that the cache surely held at `event`: two samples around it show the same measurement.
    pub(super) fn pinned(&self, event: Timestamp) -> Option<i64> {
        let (before, after) = self.around(event)?;
        let same =
            before.measured.is_some() && before.measured == after.measured && before.value == after.value;
        same.then_some(before.value)
    }

    /// The lesser of the figures around `event`, if one container ran from one to the other.
    pub(super) fn ran_through(&self, event: Timestamp) -> Option<i64> {
        let (before, after) = self.around(event)?;
        (before.started.is_some() && before.started == after.started).then(|| before.value.min(after.value))
    }

    /// The neighbours of an event: whole seconds tell for sure only what lies outside of the event's own.
    fn around(&self, event: Timestamp) -> Option<(&Point, &Point)> {
        let second = SignedDuration::from_secs(1);
        let before = self.0.iter().rfind(|point| {
            point.polled.and_then(|at| at.checked_add(second).ok()).is_some_and(|at| at <= event)
        })?;
        let after = self.0.iter().find(|point| point.polled.is_some_and(|at| at > event))?;
        Some((before, after))
    }
}

/// The one time stamp of a Summary that is never a cached one.
fn polled(sample: &Sample) -> Option<Timestamp> {
    sample.node.rlimit.as_ref()?.time
}
