//! What a kubelet says when it evicts: the messages and the event's annotations, written and read.

mod annotations;
mod limits;
mod pressure;
mod read;
mod text;

pub use annotations::{AnnotationError, Annotations};
pub(crate) use limits::enforced;
pub use limits::local_storage_eviction;
pub use pressure::{Eviction, candidates, pressure_eviction, usage};
pub use read::ReadError;
pub use text::{EvictionMessage, NodePressure, Offender, ThresholdClause};
