//! From evidence to a verdict.

mod doubt;
mod expected;
mod facts;
mod invariants;
mod killed;
mod ruling;
mod seen;
mod verdict;

pub use ruling::judge;
pub use verdict::{Check, Doubt, Judgement, Phase, Testimony, Verdict};

#[cfg(test)]
mod recordings_tests;
