//! Watching the nodes of any cluster: what each has left against its thresholds, its pods in the order in which they would be evicted, and what
//! happens then. Nothing is changed.

mod answer;
mod change;
mod eviction;
mod ledger;
mod lines;
mod node;
mod order;
mod reading;
mod reason;
mod run;
mod show;
mod sources;
mod table;
#[cfg(test)]
mod tests;

pub use node::NodeView;
pub use order::{Candidate, Never};
pub use reading::{Limit, Reading};
pub use run::{Asked, WatchError, look, watch};
pub use show::{Show, Style};
