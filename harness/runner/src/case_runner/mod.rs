//! One case on one node, from its configuration to its verdict.

pub(crate) mod configure;
pub(crate) mod error;
mod guard;
pub(crate) mod observe;
pub(crate) mod progress;
pub(crate) mod runner;
pub(crate) mod stage;
pub(crate) mod step_queue;
pub(crate) mod steps;
