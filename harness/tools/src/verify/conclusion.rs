//! The conclusion from two verdicts.

use std::path::PathBuf;

use super::context::ComparedKubelet;
use crate::bisect::BisectTerm;
use evictlab_judge::CaseResult;
use schemars::JsonSchema;
use serde::Serialize;

/// Change of a case from one kubelet to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "conclusion", content = "detail")]
pub enum Conclusion {
    /// Fails before and passes after, with the known bug if any.
    Fixed(Option<String>),
    /// Passes before and fails after.
    Regressed,
    /// Passes on both.
    Good,
    /// Fails on both, with the known bug if any.
    Bad(Option<String>),
    /// One verdict is missing or not conclusive, with the reason.
    Inconclusive(String),
}

/// The conclusion about a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CaseConclusion {
    /// The conclusion.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The conclusion in a sentence, with the case and the kubelets.
    pub sentence: String,
}

/// The conclusions about all cases, as `evictlab verify --json` prints them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifyResult {
    /// The conclusion about each case.
    pub conclusions: Vec<CaseConclusion>,
    /// Path of `verify.md`, the report to paste into an issue.
    pub report: PathBuf,
}

impl Conclusion {
    /// Compares the results; `None` for a kubelet without a result.
    pub fn new(sides: [&ComparedKubelet; 2], results: [Option<&CaseResult>; 2]) -> Self {
        let term = |place: usize| {
            let Some(result) = results[place] else {
                return Err(format!("the case was not run on {}", sides[place]));
            };
            BisectTerm::from_verdict(result.verdict)
                .ok_or_else(|| format!("{} on {}: {}", result.verdict, sides[place], result.why.trim_end()))
        };
        let bug = || results.iter().flatten().find_map(|result| result.known_bug.clone());
        match (term(0), term(1)) {
            (Err(reason), _) | (_, Err(reason)) => Self::Inconclusive(reason),
            (Ok(BisectTerm::Bad), Ok(BisectTerm::Good)) => Self::Fixed(bug()),
            (Ok(BisectTerm::Good), Ok(BisectTerm::Bad)) => Self::Regressed,
            (Ok(BisectTerm::Good), Ok(BisectTerm::Good)) => Self::Good,
            (Ok(BisectTerm::Bad), Ok(BisectTerm::Bad)) => Self::Bad(bug()),
        }
    }

    /// Describes the conclusion for a case and the two kubelets.
    pub fn sentence(&self, case: &str, [before, after]: [&ComparedKubelet; 2]) -> String {
        match self {
            Self::Fixed(Some(bug)) => format!("{bug} occurs on {before} and not on {after} ({case})."),
            Self::Fixed(None) => format!("{case} fails on {before} and passes on {after}."),
            Self::Regressed => format!("{case} passes on {before} and fails on {after}: a regression."),
            Self::Good => format!("{case} passes on {before} and on {after}: no difference."),
            Self::Bad(Some(bug)) => format!("{bug} occurs on {before} and on {after} ({case})."),
            Self::Bad(None) => format!("{case} fails on {before} and on {after}."),
            Self::Inconclusive(reason) => format!("{case} is inconclusive: {reason}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_judge::Verdict;

    #[test]
    fn summarizes_two_verdicts_in_a_sentence() {
        use Verdict::{Error, Failed, Fixed, Inconclusive, Passed, Reproduced};
        let side = |name: &str| ComparedKubelet { name: name.to_owned(), label: name.to_owned() };
        let (old, new) = (side("v1.31.14"), side("./kubelet (v1.31.14)"));
        let of = |before, after| {
            let [before, after] = [before, after].map(|verdict| {
                let known =
                    matches!(verdict, Reproduced | Fixed).then(|| "kubernetes/kubernetes#1".to_owned());
                CaseResult { known_bug: known, ..CaseResult::without_evidence(verdict, "why\n") }
            });
            let sides = [&old, &new];
            Conclusion::new(sides, [Some(&before), Some(&after)]).sentence("a/b", sides)
        };
        for (before, after, sentence) in [
            (
                Reproduced,
                Passed,
                "kubernetes/kubernetes#1 occurs on v1.31.14 and not on ./kubelet (v1.31.14) (a/b).",
            ),
            (
                Reproduced,
                Fixed,
                "kubernetes/kubernetes#1 occurs on v1.31.14 and not on ./kubelet (v1.31.14) (a/b).",
            ),
            (Failed, Passed, "a/b fails on v1.31.14 and passes on ./kubelet (v1.31.14)."),
            (Passed, Failed, "a/b passes on v1.31.14 and fails on ./kubelet (v1.31.14): a regression."),
            (Passed, Passed, "a/b passes on v1.31.14 and on ./kubelet (v1.31.14): no difference."),
            (
                Reproduced,
                Reproduced,
                "kubernetes/kubernetes#1 occurs on v1.31.14 and on ./kubelet (v1.31.14) (a/b).",
            ),
            (Failed, Failed, "a/b fails on v1.31.14 and on ./kubelet (v1.31.14)."),
            (Error, Passed, "a/b is inconclusive: error on v1.31.14: why."),
            (Reproduced, Inconclusive, "a/b is inconclusive: inconclusive on ./kubelet (v1.31.14): why."),
        ] {
            assert_eq!(of(before, after), sentence);
        }
        let sides = [&old, &new];
        let none = Conclusion::new(sides, [None, None]).sentence("a/b", sides);
        assert_eq!(none, "a/b is inconclusive: the case was not run on v1.31.14.");
    }
}
