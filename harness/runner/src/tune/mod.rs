//! Changing a node's kubelet configuration, proving it, and putting it back.

mod config;
mod difference;
mod notice;
mod tuning;

pub use config::{at_boot, base, with_reservation, with_threshold};
pub use difference::{Difference, differences};
pub use notice::is_late;
pub use tuning::{TuneError, Tuned, in_shape, restore, tune};
