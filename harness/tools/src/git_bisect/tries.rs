//! The tries of a commit: which term they give it, and how sure it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bisect::BisectTerm;

/// The number of tries with a bad verdict that makes a commit bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BadIf {
    /// One bad try suffices: the case is bad only sometimes.
    Any,
    /// All tries are bad: the case is also bad sometimes on good commits.
    All,
}

/// Conclusive tries of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tries {
    /// Tries with a good verdict.
    pub good: u32,
    /// Tries with a bad verdict.
    pub bad: u32,
}

impl Tries {
    /// Counts terms.
    pub fn count(terms: &[BisectTerm]) -> Self {
        let bad = terms.iter().filter(|term| **term == BisectTerm::Bad).count() as u32;
        Self { good: terms.len() as u32 - bad, bad }
    }

    /// Returns the term of the commit; `None` if tries are missing that could change it.
    /// `needed`: number of conclusive tries.
    pub fn term(self, needed: u32, bad_if: BadIf) -> Option<BisectTerm> {
        let is_complete = self.good + self.bad >= needed;
        match bad_if {
            BadIf::Any if self.bad > 0 => Some(BisectTerm::Bad),
            BadIf::Any => is_complete.then_some(BisectTerm::Good),
            BadIf::All if self.good > 0 => Some(BisectTerm::Good),
            BadIf::All => is_complete.then_some(BisectTerm::Bad),
        }
    }
}

/// The probability that the tries have found the right commit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confidence {
    /// Tries of the commits whose tries may differ: of the bad commits if any bad try makes a
    /// commit bad, of the good ones if all must be bad.
    pub tries: u32,
    /// Those among them with the verdict of their commits.
    pub agreeing: u32,
    /// Estimated probability that a try of such a commit has the verdict of the commit.
    pub rate: f64,
    /// Probability that not all tries of such a commit have the other verdict.
    pub confidence: f64,
}

impl Confidence {
    /// Estimates the confidence from the tries of all commits with a term.
    ///
    /// With [`BadIf::Any`], a wrong search has called a bad commit good next to the result: all its
    /// tries were good. If a try of a bad commit is bad with probability `p`, this happens with
    /// probability `(1 - p)^tries`. With [`BadIf::All`], the same applies to a good commit whose
    /// tries were all bad. `p` is estimated by the rule of succession, `(k + 1) / (n + 2)`.
    pub fn estimate(tested: &[(BisectTerm, Tries)], tries_per_commit: u32, bad_if: BadIf) -> Self {
        let uncertain = match bad_if {
            BadIf::Any => BisectTerm::Bad,
            BadIf::All => BisectTerm::Good,
        };
        let (mut tries, mut agreeing) = (0, 0);
        for (_, of_commit) in tested.iter().filter(|(term, _)| *term == uncertain) {
            tries += of_commit.good + of_commit.bad;
            agreeing += match uncertain {
                BisectTerm::Bad => of_commit.bad,
                BisectTerm::Good => of_commit.good,
            };
        }
        let rate = f64::from(agreeing + 1) / f64::from(tries + 2);
        let missed = (1.0 - rate).powf(f64::from(tries_per_commit));
        Self { tries, agreeing, rate, confidence: 1.0 - missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_needs_the_tries_that_could_change_it() {
        let (good, bad) = (Some(BisectTerm::Good), Some(BisectTerm::Bad));
        // Good tries, bad tries, term if any is bad, term if all are bad; of 3.
        let rows = [
            (3, 0, good, good),
            (2, 1, bad, good),
            (1, 2, bad, good),
            (0, 3, bad, bad),
            (2, 0, None, good),
            (0, 2, bad, None),
            (0, 0, None, None),
        ];
        for (of_good, of_bad, any, all) in rows {
            let tries = Tries { good: of_good, bad: of_bad };
            assert_eq!((tries.term(3, BadIf::Any), tries.term(3, BadIf::All)), (any, all), "{tries:?}");
        }
    }

    #[test]
    fn the_confidence_grows_with_the_rate_and_the_tries() {
        let tries = |good, bad| Tries { good, bad };
        let tested = [
            (BisectTerm::Good, tries(4, 0)),
            (BisectTerm::Bad, tries(2, 2)),
            (BisectTerm::Bad, tries(1, 3)),
            (BisectTerm::Good, tries(4, 0)),
        ];
        let estimate = Confidence::estimate(&tested, 4, BadIf::Any);
        assert_eq!((estimate.tries, estimate.agreeing, estimate.rate), (8, 5, 0.6));
        assert!((estimate.confidence - (1.0 - 0.4_f64.powi(4))).abs() < 1e-9, "{estimate:?}");
        let estimate = Confidence::estimate(&tested, 4, BadIf::All);
        assert_eq!((estimate.tries, estimate.agreeing), (8, 8));
        let once = Confidence::estimate(&tested, 1, BadIf::All);
        assert_eq!(once.confidence, once.rate);
    }
}
