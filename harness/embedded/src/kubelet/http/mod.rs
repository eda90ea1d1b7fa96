//! HTTP endpoints of the kubelet.

mod answer;
mod metrics;

pub use answer::Answer;
pub(crate) use answer::connection_refused;
