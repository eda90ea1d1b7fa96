//! One case on one node, from its configuration to its verdict.

mod configure;
mod create_pods;
mod error;
mod guard;
mod observation;
mod progress;
mod runner;
mod steps;

#[cfg(test)]
pub(crate) use error::CaseError;
#[cfg(test)]
pub(crate) use observation::observer::SummaryError;
pub(crate) use runner::{CaseOutcome, CaseRunner, Interrupted};
