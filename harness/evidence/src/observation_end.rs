//! Reasons why the observation of a case ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
            Self::Deadline(deadline) => Some(format!(
                "the deadline of {} s elapsed: that of the case, and the delays of the node and its ramp",
                deadline.as_secs()
            )),
        }
    }
}
