//! What an eviction says, in plain words: from anybody's events and pods, without a cluster.

mod account;
mod bugs;
mod containers;
mod explanation;
mod input;
mod relatives;
mod witnesses;
mod words;

pub use account::{NothingToExplain, explain};
pub use explanation::{Bug, ContainerTold, Explanation, Kind, Witness};
pub use input::{Input, InputError};
pub(crate) use words::amount;
