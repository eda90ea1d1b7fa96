//! From evidence to a verdict.

mod asked;
mod doubt;
mod expected;
mod facts;
mod invariants;
mod killed;
mod rate;
mod ruling;
mod seen;
mod verdict;

pub use rate::{Rate, over_runs};
pub use ruling::{judge, known_bug};
pub use verdict::{Check, Doubt, Judgement, Phase, Testimony, Verdict};

#[cfg(test)]
mod recordings_tests;
