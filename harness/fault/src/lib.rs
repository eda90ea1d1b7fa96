//! Fault scripts: the faults that case files and command lines inject into a cluster.
//!
//! This crate defines the script and its parser. The embedded cluster injects the faults.
//!
//! ```
//! let script = evictlab_fault::parse("- kubelet-restart: {at: 5s}\n- event-lost: {times: 1}")?;
//! assert_eq!(script[0].name(), "kubelet-restart");
//! # Ok::<(), evictlab_fault::ScriptError>(())
//! ```

mod duration_error;
mod parse;
mod script;
mod span;

#[cfg(test)]
mod error_texts;

pub use duration_error::{DurationError, parse_duration};
pub use parse::{ScriptError, parse};
pub use script::{
    EventDelay, EventSelector, FailedRequests, Fault, FaultTime, SlowRequests, StatsMissing, TimeRange,
    WatchSelector,
};
pub use span::{Span, SpanError};
