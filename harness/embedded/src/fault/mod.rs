//! What goes wrong, and when: a small script, and the places where it strikes.

mod faults;
mod parse;
mod script;
mod span;
mod strike;

pub use faults::{EventFate, Faults, RequestFate, Scope};
pub use parse::{ScriptError, parse};
pub use script::{ApiError, ApiSlow, Event, EventLate, Fault, Moment, StatsMissing, Watch, While};
pub use span::{Span, SpanError};
pub use strike::strike;
