//! The kubelet's eviction rules as pure functions, by kubelet version: no I/O, no async, no clock.

mod version;

pub use version::{KubeletVersion, VersionError};
