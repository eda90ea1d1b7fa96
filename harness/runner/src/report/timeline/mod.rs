//! What became of a node and of a case's containers over time: read from the evidence, and drawn.

mod axis;
mod draw;
mod read;
mod unit;

pub(super) use draw::{STYLE, figure, picture};

use evictlab_rules::threshold::Signal;
use unit::Unit;

/// The course of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timeline {
    /// The signal that ran short; none where a pod only went over its own limits.
    signal: Option<Signal>,
    unit: Unit,
    /// What the node had left, in the order of time.
    available: Vec<Point>,
    /// What the kubelet wants to be left.
    thresholds: Vec<Bound>,
    /// What each container used, or each pod where the kubelet tells no more.
    used: Vec<Series>,
    /// When a condition of the node was true.
    conditions: Vec<Span>,
    /// What happened, in the order of time.
    marks: Vec<Mark>,
    /// The last moment, in seconds since the first pod's creation.
    end: f64,
}

/// A figure at a moment, in seconds since the first pod's creation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    t: f64,
    value: f64,
}

/// A threshold.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    name: String,
    value: f64,
}

/// The figures of one container.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    name: String,
    points: Vec<Point>,
}

/// A time for which something held.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    name: String,
    from: f64,
    to: f64,
}

/// A moment.
#[derive(Clone, Debug, PartialEq)]
struct Mark {
    t: f64,
    text: String,
}
