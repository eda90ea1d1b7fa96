//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod bisect;
pub(crate) mod book;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod doctor;
mod dry_run;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod history;
pub(crate) mod image;
mod image_update;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mutants;
pub(crate) mod new;
pub(crate) mod report;
mod report_merge;
pub(crate) mod run;
pub(crate) mod schema;
mod serve_embedded;
pub(crate) mod stress;
pub(crate) mod verify;
pub(crate) mod watch;
