//! Tests of the command `evictlab` that do not create kind clusters.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod bad_input;
mod bisect;
mod bisect_commits;
mod book;
mod browser;
mod cases;
#[cfg(target_os = "linux")]
mod ci_files;
mod cluster;
mod docker;
mod doctor;
mod documents;
mod dry_run;
mod embedded;
mod error_texts;
mod examples;
mod existing;
mod export;
#[cfg(target_os = "linux")]
mod full_disk;
mod gc;
mod history;
#[cfg(target_os = "linux")]
mod image;
mod image_update;
mod import_cycles;
mod installed;
mod interrupted;
mod job;
#[cfg(target_os = "linux")]
mod job_permissions;
mod merge;
mod model;
mod modules;
mod new_minor;
mod output;
mod parity;
mod profile;
mod report;
#[cfg(target_os = "linux")]
mod resize;
mod size;
mod stress;
#[cfg(target_os = "linux")]
mod unread_output;
mod untrusted;
mod verify;
mod watch;
mod wrong_expectations;

/// Replaces sequences of spaces by one: the columns of tables are aligned.
fn squeezed(text: &str) -> String {
    let words = |line: &str| line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    text.split('\n').map(words).collect::<Vec<_>>().join("\n")
}
