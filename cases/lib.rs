//! The suites are the YAML files beside this one; `cases.rs` runs them as Cargo tests. They are also in the binary, so
//! that `evictlab` works from anywhere.

/// Every case file: its path from here, such as `message/sidecars-are-named.yaml`, and its text.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));
