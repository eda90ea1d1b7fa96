//! The harness: case files are selected into a plan; each case leases a node, tunes it, creates its pods, watches
//! the pressure grow, and judges what the kubelet said.
//!
//! ```text
//! case files ─select→ plan ─lease→ node ─tune→ pods ─pressure→ observations ─judge→ verdict ─report→ results/
//! ```
//!
//! Each arrow is one module. A type never travels backwards.

pub mod bench;
pub mod bisect;
pub mod case;
pub mod cel;
pub mod clock;
pub mod cluster;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod images;
pub mod judge;
pub mod observe;
pub mod report;
pub mod reset;
pub mod schedule;
pub mod select;
pub mod stage;
pub mod tune;
pub mod verify;
pub mod wait;
pub mod watch;
pub mod words;
