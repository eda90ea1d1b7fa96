//! Watching a case on its node: the evidence.

mod collect;
mod history;
mod logs;
mod observations;
mod progress;
mod sample;
mod samples;
mod statuses;
mod watch;

pub use collect::{Before, collect};
pub use history::name_of;
pub use logs::logs;
pub use observations::{Observations, thresholds};
pub use progress::{Ended, Wanted, Watched};
pub use sample::sample;
pub use samples::Samples;
pub(crate) use statuses::{STATUSES, ended_by_kubelet, statuses};
pub(crate) use watch::{Pause, plain};
pub use watch::{Seen, watch};
