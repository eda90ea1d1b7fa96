//! From a verdict to what libtest knows.

use evictlab_runner::judge::{Judgement, Verdict};
use libtest_mimic::{Completion, Failed};

/// What a test came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was judged.
    Judged(Box<Judgement>),
    /// There is no cluster to be had, and why.
    NoCluster {
        /// Why.
        why: String,
        /// Whether that is a failure.
        required: bool,
    },
    /// The run ended without a verdict.
    Nothing,
}

impl Outcome {
    /// Passed, reproduced and fixed are successes; skipped is ignored; the rest fails, with its grounds.
    pub fn completion(self) -> Result<Completion, Failed> {
        match self {
            Self::Judged(judgement) => match judgement.verdict {
                Verdict::Passed | Verdict::Reproduced | Verdict::Fixed => Ok(Completion::Completed),
                Verdict::Skipped => Ok(Completion::ignored_with(judgement.why)),
                verdict => Err(format!("{verdict}: {}\n{}", judgement.why, judgement.diff).into()),
            },
            Self::NoCluster { why, required: true } => Err(format!("no cluster is to be had: {why}").into()),
            Self::NoCluster { why, required: false } => {
                let line = why.lines().next().unwrap_or_default();
                Ok(Completion::ignored_with(format!("no cluster is to be had: {line}")))
            }
            Self::Nothing => Err("the run ended without a verdict".into()),
        }
    }
}
