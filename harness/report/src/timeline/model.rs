//! The data of a timeline.

use super::unit::Unit;
use evictlab_rules::threshold::Signal;

/// Measurements of a node and of a case's containers over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timeline {
    /// The eviction signal; `None` if a pod only exceeded its own limits.
    pub(super) signal: Option<Signal>,
    /// Unit of all values.
    pub(super) unit: Unit,
    /// Available amount on the node, in chronological order.
    pub(super) available: Vec<Point>,
    /// Eviction thresholds.
    pub(super) thresholds: Vec<ThresholdLine>,
    /// Usage of each container, or of each pod where the kubelet has no container statistics.
    pub(super) used: Vec<TimelineSeries>,
    /// Periods in which a node condition was true.
    pub(super) conditions: Vec<ConditionPeriod>,
    /// Pod events, in chronological order.
    pub(super) marks: Vec<EventMark>,
    /// End of the timeline, in seconds since the first pod's creation.
    pub(super) end: f64,
}

/// A value at a time, in seconds since the first pod's creation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub t: f64,
    pub value: f64,
}

/// An eviction threshold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThresholdLine {
    pub name: String,
    pub value: f64,
}

/// The values of one container or pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimelineSeries {
    pub name: String,
    pub points: Vec<Point>,
}

/// A period in which a node condition was true, or `Ready` was not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConditionPeriod {
    pub name: String,
    pub from: f64,
    pub to: f64,
}

/// An event at a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventMark {
    pub t: f64,
    pub text: String,
}
