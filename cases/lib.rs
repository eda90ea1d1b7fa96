//! The suites, as YAML files next to this one; `cases.rs` runs them as Cargo tests. They are also
//! compiled into the binary, so that `evictlab` works in any directory.
//!
//! ```
//! let suites: std::collections::BTreeSet<&str> =
//!     cases::FILES.iter().filter_map(|file| Some(file.path.split_once('/')?.0)).collect();
//! assert!(suites.contains("message") && suites.contains("ranking"));
//! ```

#![deny(unreachable_pub)]

use evictlab_case::BuiltInCase;

/// Every case file, such as `message/sidecars-are-named.yaml`.
pub const FILES: &[BuiltInCase] = include!(concat!(env!("OUT_DIR"), "/files.rs"));
