//! The events of a run, the state of a run, and every report made from them.
//!
//! The runner sends [`RunEvent`]s through an [`EventSender`]. One thread folds them into a
//! [`RunState`] and passes each event, with that state, to every [`Report`]: the terminal, the
//! build log, `events.jsonl`, JUnit, Prow metadata, GitHub annotations, and the evidence of each
//! case. Reports never interpret the events from the beginning; they read the state.
//!
//! A finished run can be read back and rendered again:
//!
//! ```no_run
//! use evictlab_report::{EvidenceBase, RecordedRun, compare, page};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let before = RecordedRun::read("results/2026-11-20T09-30-12Z".as_ref())?;
//! let after = RecordedRun::read("results/latest".as_ref())?;
//! let base = EvidenceBase::relative("results/latest".as_ref(), ".".as_ref());
//! std::fs::write("run.html", page(&after, &base)?)?;
//! print!("{}", compare(&before, &after).render());
//! # Ok(())
//! # }
//! ```

#![deny(unreachable_pub)]

mod attention;
mod backend_name;
pub mod baseline;
mod baseline_changes;
mod baseline_writer;
pub mod clock;
mod compare;
mod confined;
mod estimate;
mod eviction_record;
mod evidence_files;
mod evidence_writer;
pub mod exit_code;
mod facts;
mod github;
mod history;
mod jsonl;
mod junit;
mod known_bugs;
mod markdown;
mod matrix;
mod median;
mod merge;
mod output_options;
mod output_queue;
mod output_schema;
mod page;
mod parity;
mod prow;
mod recorded;
mod recording;
mod redact;
mod repro_command;
mod reserve;
mod retention;
mod run_dir;
mod run_event;
mod run_state;
mod select;
mod sink;
mod summary;
mod symbols;
mod terminal;
mod terminal_caps;
pub mod text;
mod timeline;
mod verdict_collector;

#[cfg(test)]
mod error_texts;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod untrusted_tests;

pub use backend_name::BackendName;
pub use compare::{ChangedCase, ComparedRun, Comparison, compare};
pub use confined::open_below;
pub use estimate::EarlierRuns;
pub use eviction_record::describe_message;
pub use evidence_writer::{EvidenceWriter, KeptEvidence};
pub use facts::{Facts, ObjectHistory};
pub use github::{Annotations, GithubLog, JobSummary};
pub use history::{History, PastResult, Series, SeriesChange, history_page, history_table};
pub use jsonl::JsonLines;
pub use junit::Junit;
pub use markdown::model_notice;
pub use median::median;
pub use merge::{Merge, MergeError};
pub use output_options::{OutputFormat, OutputOptions, OutputPreferences, Verbosity};
pub use output_queue::{InterruptStage, write_until_interrupt};
pub use output_schema::{closed_schema, output_schema};
pub use page::{EvidenceBase, html_document, markdown_page, page, search_field};
pub use parity::{
    Agreement, CaseAgreement, CaseResults, ComparedCase, KubeletParity, KubeletResults, KubeletResultsError,
    parity, parity_details, parity_table,
};
pub use prow::{Prow, ProwFinished, ProwStarted};
pub use recorded::{RecordedRun, RecordedRunError, Unsuccessful, replay_recorded};
pub use recording::Recording;
pub use retention::{RetentionError, delete_run, old_runs};
pub use run_dir::{
    LATEST_RUN, RESULTS_DIR, RunDir, create_private, create_private_dir, replace_private, write_private,
};
pub use run_event::{
    CaseId, CaseInfo, ClusterFailureCause, FlakyResult, Model, RunEvent, RunEventKind, ShardInfo,
};
pub use run_state::RunState;
pub use select::{ReportOptions, reports};
pub use sink::{EventSender, Finished, Report, ReportError, ReportFailure, Reports};
pub use terminal::{
    Line, LiveTerminal, PlainLog, RunSummary, Screen, StatusLine, Style, Tally, color_markdown,
};
pub use terminal_caps::{ColorChoice, TerminalCaps};
pub use verdict_collector::{ClusterFailure, CollectedResult, VerdictCollector};
