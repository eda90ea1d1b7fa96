//! Short-lived pods that test a node from the inside.

mod error;
mod pod;
mod properties;

pub use error::ProbeError;
pub(crate) use pod::POD_TIMEOUT;
pub use pod::{ProbePod, ProbePods};
pub use properties::available_memory;
pub(crate) use properties::probe;
