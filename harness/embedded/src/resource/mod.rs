//! Parts of objects that several components read in the same way.

pub(crate) mod event;
mod event_correlator;
mod kind;
pub(crate) mod label_selector;
mod object;
pub(crate) mod pod_status;
pub(crate) mod scheduling;

pub(crate) use event::{Event, EventBody};
pub(crate) use event_correlator::{CorrelatedEvent, Correlator};
pub use kind::Kind;
pub(crate) use kind::Scope;
pub(crate) use object::{ALL_CONTAINER_LISTS, ObjectExt, RESOURCE_CONTAINER_LISTS, amount, parse_yaml};
pub(crate) use pod_status::{Phase, PodStatus};
