//! Tests of the command `evictlab` that do not create kind clusters.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod bad_input;
mod bisect;
mod broken;
mod cases;
mod docker;
mod doctor;
mod embedded;
mod existing;
mod export;
#[cfg(target_os = "linux")]
mod image;
mod installed;
mod interrupted;
mod model;
mod report;
mod stress;
#[cfg(target_os = "linux")]
mod unread_output;
mod untrusted;
mod verify;
mod watch;
