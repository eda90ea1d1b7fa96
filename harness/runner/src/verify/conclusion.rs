//! What two verdicts say together.

use std::fmt;

use super::Side;
use crate::bisect::Standing;
use crate::judge::Judgement;

/// What becomes of a case from one kubelet to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// What is wrong before is right after. The known bug, if it is one.
    Mended(Option<String>),
    /// What is right before is wrong after.
    Broken,
    /// Right on both.
    Good,
    /// Wrong on both. The known bug, if it is one.
    Bad(Option<String>),
    /// One of them told nothing: which, and why.
    Untold(String),
}

impl Conclusion {
    /// From the verdicts, none for a kubelet without one.
    pub fn of(sides: [&Side; 2], judgements: [Option<&Judgement>; 2]) -> Self {
        let told = |place: usize| {
            let Some(judgement) = judgements[place] else {
                return Err(format!("the case was not run on {}", sides[place]));
            };
            Standing::of(judgement.verdict).ok_or_else(|| {
                format!("{} on {}: {}", judgement.verdict, sides[place], judgement.why.trim_end())
            })
        };
        let bug = || judgements.iter().flatten().find_map(|judgement| judgement.known_bug.clone());
        match (told(0), told(1)) {
            (Err(why), _) | (_, Err(why)) => Self::Untold(why),
            (Ok(Standing::Bad), Ok(Standing::Good)) => Self::Mended(bug()),
            (Ok(Standing::Good), Ok(Standing::Bad)) => Self::Broken,
            (Ok(Standing::Good), Ok(Standing::Good)) => Self::Good,
            (Ok(Standing::Bad), Ok(Standing::Bad)) => Self::Bad(bug()),
        }
    }

    /// In a sentence, of a case and the two kubelets.
    pub fn sentence(&self, case: &str, [before, after]: [&Side; 2]) -> String {
        match self {
            Self::Mended(Some(bug)) => format!("{bug} shows on {before} and does not on {after} ({case})."),
            Self::Mended(None) => format!("{case} fails on {before} and holds on {after}."),
            Self::Broken => format!("{case} holds on {before} and fails on {after}: a regression."),
            Self::Good => format!("{case} holds on {before} and on {after}: there is no difference."),
            Self::Bad(Some(bug)) => format!("{bug} shows on {before} and on {after} ({case})."),
            Self::Bad(None) => format!("{case} fails on {before} and on {after}."),
            Self::Untold(why) => format!("{case} leaves it open: {why}."),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;

    #[test]
    fn two_verdicts_make_a_sentence() {
        use Verdict::{Error, Failed, Fixed, Inconclusive, Passed, Reproduced};
        let side = |name: &str| Side { name: name.to_owned(), label: name.to_owned() };
        let (old, new) = (side("v1.31.14"), side("./kubelet (v1.31.14)"));
        let of = |before, after| {
            let [before, after] = [before, after].map(|verdict| {
                let known =
                    matches!(verdict, Reproduced | Fixed).then(|| "kubernetes/kubernetes#1".to_owned());
                Judgement { known_bug: known, ..Judgement::without_evidence(verdict, "why\n") }
            });
            let sides = [&old, &new];
            Conclusion::of(sides, [Some(&before), Some(&after)]).sentence("a/b", sides)
        };
        for (before, after, sentence) in [
            (
                Reproduced,
                Passed,
                "kubernetes/kubernetes#1 shows on v1.31.14 and does not on ./kubelet (v1.31.14) (a/b).",
            ),
            (
                Reproduced,
                Fixed,
                "kubernetes/kubernetes#1 shows on v1.31.14 and does not on ./kubelet (v1.31.14) (a/b).",
            ),
            (Failed, Passed, "a/b fails on v1.31.14 and holds on ./kubelet (v1.31.14)."),
            (Passed, Failed, "a/b holds on v1.31.14 and fails on ./kubelet (v1.31.14): a regression."),
            (Passed, Passed, "a/b holds on v1.31.14 and on ./kubelet (v1.31.14): there is no difference."),
            (
                Reproduced,
                Reproduced,
                "kubernetes/kubernetes#1 shows on v1.31.14 and on ./kubelet (v1.31.14) (a/b).",
            ),
            (Failed, Failed, "a/b fails on v1.31.14 and on ./kubelet (v1.31.14)."),
            (Error, Passed, "a/b leaves it open: error on v1.31.14: why."),
            (Reproduced, Inconclusive, "a/b leaves it open: inconclusive on ./kubelet (v1.31.14): why."),
        ] {
            assert_eq!(of(before, after), sentence);
        }
        let sides = [&old, &new];
        let none = Conclusion::of(sides, [None, None]).sentence("a/b", sides);
        assert_eq!(none, "a/b leaves it open: the case was not run on v1.31.14.");
    }
}
