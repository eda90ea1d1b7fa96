//! From evidence to a verdict.

mod verdict;

pub use verdict::{Check, Doubt, Judgement, Phase, Testimony, Verdict};
