//! The faults of a script.
//!
//! Times count from the injection of the script; a case injects its script before it creates its
//! first pod.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use crate::Span;

/// A fault that is injected into a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Drops events that the kubelet records.
    EventLost(EventSelector),
    /// Stores events twice, as two objects.
    EventDoubled(EventSelector),
    /// Delays events.
    EventLate(EventDelay),
    /// Closes open watches; clients may resume at the last version that they received.
    WatchClosed(WatchSelector),
    /// Ends open watches with 410 Gone, so that clients must list again.
    WatchExpired(WatchSelector),
    /// Answers API requests with an error.
    ApiError(FailedRequests),
    /// Delays the answers to API requests.
    ApiSlow(SlowRequests),
    /// Restarts the kubelet: its in-memory state is lost, containers keep running.
    KubeletRestart(FaultTime),
    /// Makes the kernel kill the process that the OOM killer would choose.
    OomKill(FaultTime),
    /// Stops the kubelet, so that the node is unreachable.
    NodeGone(TimeRange),
    /// Removes pods from the kubelet's statistics.
    StatsMissing(StatsMissing),
}

/// Events with a reason.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Event")]
pub struct EventSelector {
    /// Event reason, such as `Evicted`.
    #[serde(default = "evicted")]
    pub reason: String,
    /// Number of events; all events by default.
    #[serde(default)]
    pub times: Option<u32>,
}

/// Events with a reason, and their delay.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "EventLate")]
pub struct EventDelay {
    /// Event reason, such as `Evicted`.
    #[serde(default = "evicted")]
    pub reason: String,
    /// Delay.
    pub by: Span,
}

/// Watches of a resource, and the moment at which they end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Watch")]
pub struct WatchSelector {
    /// Time of the fault.
    #[serde(default)]
    pub at: Span,
    /// Watched resource, such as `events`; all resources by default.
    #[serde(default)]
    pub resource: Option<String>,
}

/// Requests that fail, and the status of the error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "ApiError")]
pub struct FailedRequests {
    /// Start of the fault.
    #[serde(default)]
    pub at: Span,
    /// Duration of the fault.
    #[serde(rename = "for", default = "three_seconds")]
    pub length: Span,
    /// HTTP status, 400 to 599.
    #[serde(default = "internal_error", deserialize_with = "http_error")]
    #[schemars(range(min = 400, max = 599))]
    pub code: u16,
    /// Requested resource, such as `pods`; all resources by default.
    #[serde(default)]
    pub resource: Option<String>,
}

/// Requests that are delayed, and their delay.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "ApiSlow")]
pub struct SlowRequests {
    /// Start of the fault.
    #[serde(default)]
    pub at: Span,
    /// Duration of the fault.
    #[serde(rename = "for", default = "three_seconds")]
    pub length: Span,
    /// Delay of each request.
    pub by: Span,
    /// Requested resource, such as `pods`; all resources by default.
    #[serde(default)]
    pub resource: Option<String>,
}

/// Moment of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Moment")]
pub struct FaultTime {
    /// Time of the fault.
    #[serde(default)]
    pub at: Span,
}

/// Start and duration of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "While")]
pub struct TimeRange {
    /// Start of the fault.
    #[serde(default)]
    pub at: Span,
    /// Duration of the fault; unlimited by default.
    #[serde(rename = "for", default)]
    pub length: Option<Span>,
}

/// Pods without statistics, and the time range.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatsMissing {
    /// Start of the fault.
    #[serde(default)]
    pub at: Span,
    /// Duration of the fault; unlimited by default.
    #[serde(rename = "for", default)]
    pub length: Option<Span>,
    /// Pod name; all pods by default.
    #[serde(default)]
    pub pod: Option<String>,
}

fn evicted() -> String {
    "Evicted".to_owned()
}

fn three_seconds() -> Span {
    Duration::from_secs(3).into()
}

fn internal_error() -> u16 {
    500
}

fn http_error<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let code = u16::deserialize(from)?;
    let problem = || de::Error::custom(format!("{code} is not an HTTP error: use 400 to 599"));
    if (400..600).contains(&code) { Ok(code) } else { Err(problem()) }
}

impl Fault {
    /// Name of the fault in a script, such as `event-lost`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EventLost(_) => "event-lost",
            Self::EventDoubled(_) => "event-doubled",
            Self::EventLate(_) => "event-late",
            Self::WatchClosed(_) => "watch-closed",
            Self::WatchExpired(_) => "watch-expired",
            Self::ApiError(_) => "api-error",
            Self::ApiSlow(_) => "api-slow",
            Self::KubeletRestart(_) => "kubelet-restart",
            Self::OomKill(_) => "oom-kill",
            Self::NodeGone(_) => "node-gone",
            Self::StatsMissing(_) => "stats-missing",
        }
    }

    /// Start and duration; no duration for faults that are instantaneous or unlimited.
    pub fn times(&self) -> (Duration, Option<Duration>) {
        let get = |span: &Option<Span>| span.map(Span::get);
        match self {
            Self::EventLost(_) | Self::EventDoubled(_) | Self::EventLate(_) => (Duration::ZERO, None),
            Self::WatchClosed(watch) | Self::WatchExpired(watch) => (watch.at.get(), None),
            Self::ApiError(error) => (error.at.get(), Some(error.length.get())),
            Self::ApiSlow(slow) => (slow.at.get(), Some(slow.length.get())),
            Self::KubeletRestart(moment) | Self::OomKill(moment) => (moment.at.get(), None),
            Self::NodeGone(gone) => (gone.at.get(), get(&gone.length)),
            Self::StatsMissing(missing) => (missing.at.get(), get(&missing.length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> Result<Fault, String> {
        crate::parse::from_yaml(script).map_err(|error| error.to_string())
    }

    #[test]
    fn errors_name_their_position() {
        let error = |script: &str| read(script).unwrap_err();
        assert!(error("event-lots: {}").contains("event-lost"), "lists the known names");
        assert!(error("api-error: {code: 42}").contains("42 is not an HTTP error: use 400 to 599"));
        assert!(error("kubelet-restart: {at: soon}").contains("line 1, column 23"));
        assert!(error("oom-kill: {when: 3s}").contains("when"));
    }

    #[test]
    fn missing_fields_have_defaults() {
        let event = EventSelector { reason: "Evicted".to_owned(), times: None };
        assert_eq!(read("event-lost: {}"), Ok(Fault::EventLost(event)));
        let error = read("api-error: {}").unwrap();
        assert_eq!(error.times(), (Duration::ZERO, Some(Duration::from_secs(3))));
    }
}
