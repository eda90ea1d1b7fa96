//! The suites, as YAML files next to this one; `cases.rs` runs them as Cargo tests. They are also
//! compiled into the binary, so that `evictlab` works in any directory.
//!
//! ```
//! let suites: std::collections::BTreeSet<&str> =
//!     cases::FILES.iter().filter_map(|(path, _)| Some(path.split_once('/')?.0)).collect();
//! assert!(suites.contains("message") && suites.contains("ranking"));
//! ```

#![deny(unreachable_pub)]

/// Path and text of every case file, such as `message/sidecars-are-named.yaml`.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));
