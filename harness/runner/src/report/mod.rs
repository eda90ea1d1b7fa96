//! Everything a run leaves for people and machines to read, made from one stream of events.

mod stream;

pub use stream::{CaseId, Planned, RunEvent, What};
