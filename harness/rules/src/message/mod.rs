//! Eviction messages and the annotations of Evicted events.
//!
//! [`pressure_eviction`] and [`local_storage_eviction`] compose the message of a given kubelet
//! version byte for byte; `Display` and `FromStr` of [`EvictionMessage`] print and parse it.
//! [`Annotations`] does the same for the annotations.

mod annotations;
mod kind;
mod limits;
mod parse;
mod pressure;
mod text;

pub use annotations::{
    AnnotationError, Annotations, OFFENDING_CONTAINERS_KEY, OFFENDING_CONTAINERS_USAGE_KEY,
    OFFENDING_POD_KEY, OFFENDING_POD_USAGE_KEY, STARVED_RESOURCE_KEY,
};
pub use kind::{EVICTED_REASON, EvictionKind, is_rejection_message};
pub(crate) use limits::containers_with_enforced_limit;
pub use limits::{exceeded_storage_limits, local_storage_eviction};
pub use parse::MessageParseError;
pub use pressure::{PressureEviction, container_usage, pressure_eviction, reportable_containers};
pub use text::{EvictionMessage, NodePressure, Offender, ThresholdClause};
