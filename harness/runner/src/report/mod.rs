//! Everything a run leaves for people and machines to read, made from one stream of events.

mod account;
pub mod baseline;
mod changes;
mod compare;
mod evidence;
pub mod exit_code;
mod github;
mod jsonl;
mod junit;
mod ledger;
mod page;
mod past;
mod prow;
mod recording;
mod redact;
mod run_dir;
mod select;
mod sink;
mod stream;
mod terminal;
mod testimony;
mod timeline;

#[cfg(test)]
pub(crate) mod story;

pub(crate) use account::of_model;
pub use compare::compare;
pub use evidence::Evidence;
pub use github::{Annotations, JobSummary};
pub use jsonl::JsonLines;
pub use junit::Junit;
pub use page::page;
pub use past::{PastError, PastRun};
pub use prow::Prow;
pub use recording::Recording;
pub use run_dir::RunDir;
pub use select::{Wanted, reports};
pub use sink::{Events, Finished, Report, ReportError, ReportFailure, Reports};
pub use stream::{CaseId, Model, Planned, RunEvent, What};
pub(crate) use terminal::{Ink, Line, Screen};
pub use terminal::{Live, Manners, Plain, Tally};
pub(crate) use testimony::apart;
