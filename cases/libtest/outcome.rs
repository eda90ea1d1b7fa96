//! Conversion of verdicts to results of libtest.

use std::sync::Arc;

use evictlab_judge::{CaseResult, Verdict};
use libtest_mimic::{Completion, Failed};

/// TestOutcome of a test.
#[derive(Clone, Debug)]
pub(crate) enum TestOutcome {
    /// The case has a verdict.
    Judged(Arc<CaseResult>),
    /// The case has a verdict that is a success and differs from the baseline, which expects
    /// another one or none.
    Changed(Arc<CaseResult>, Option<Verdict>),
    /// No cluster is available.
    NoCluster {
        /// The reason.
        why: String,
        /// True if this is a failure.
        required: bool,
    },
    /// The run ended without a verdict.
    NoVerdict,
}

impl TestOutcome {
    /// Passed, reproduced and fixed are successes; skipped is ignored; other verdicts fail with
    /// their reason.
    pub(crate) fn completion(self) -> Result<Completion, Failed> {
        match self {
            Self::Judged(result) => match result.verdict {
                verdict if verdict.is_success() => Ok(Completion::Completed),
                Verdict::Skipped => Ok(Completion::ignored_with(result.why.clone())),
                verdict => Err(format!("{verdict}: {}\n{}", result.why, result.diff).into()),
            },
            Self::Changed(result, expected) => {
                let expected = expected.map_or_else(|| "none".to_owned(), |verdict| verdict.to_string());
                let CaseResult { verdict, why, .. } = &*result;
                Err(format!(
                    "{verdict}: {why}\nresults/baseline.json expects {expected}\nhelp: if the change is right: evictlab run --kubelet all --write-baseline"
                )
                .into())
            }
            Self::NoCluster { why, required: true } => Err(format!("no cluster available: {why}").into()),
            Self::NoCluster { why, required: false } => {
                let line = why.lines().next().unwrap_or_default();
                Ok(Completion::ignored_with(format!("no cluster available: {line}")))
            }
            Self::NoVerdict => Err("the run ended without a verdict".into()),
        }
    }
}
