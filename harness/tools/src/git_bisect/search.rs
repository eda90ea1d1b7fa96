//! The search: which commit is tested next, and the outcome.

use super::repository::{GitError, Repository, RevisionNames};
use super::search_file::{CommitResult, SearchFile, TestedCommit};
use super::tries::{Confidence, Tries};
use crate::bisect::BisectTerm;

/// Fractional part of the golden ratio: its multiples are spread evenly.
const GOLDEN_RATIO: f64 = 0.618_033_988_75;

/// A search in the history of a repository.
#[derive(Clone, Debug)]
pub struct CommitSearch {
    /// The repository.
    pub repository: Repository,
    /// Options and tested commits.
    pub file: SearchFile,
    /// Id of the older end.
    pub old: String,
    /// Id of the newer end.
    pub new: String,
    /// Given term of the older end; the newer one has the opposite.
    pub old_term: BisectTerm,
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommitSearchStep {
    /// Test a commit.
    Test {
        /// Id of the commit.
        commit: String,
        /// Number of commits that are left, including this one.
        left: usize,
    },
    /// The search has ended.
    Done(CommitSearchOutcome),
}

/// Outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitSearchOutcome {
    /// The first commit with the term of the newer end.
    Found(String),
    /// The first commit is one of these; all but the last were skipped.
    OneOf(Vec<String>),
    /// An end has another term than given.
    EndMismatch(String),
    /// An end was skipped.
    EndSkipped(String),
    /// Neither end builds.
    NoEndBuilds,
}

impl CommitSearch {
    /// Returns the search between the ends in `file`. Errors name the ends by `names`.
    ///
    /// # Errors
    /// Neither end is an ancestor of the other one.
    pub fn new(repository: Repository, file: SearchFile, names: RevisionNames<'_>) -> Result<Self, GitError> {
        let (good, bad) = (file.options.good.clone(), file.options.bad.clone());
        if repository.is_ancestor(&good, &bad)? {
            return Ok(Self { repository, file, old: good, new: bad, old_term: BisectTerm::Good });
        }
        if repository.is_ancestor(&bad, &good)? {
            return Ok(Self { repository, file, old: bad, new: good, old_term: BisectTerm::Bad });
        }
        Err(repository.unrelated(names))
    }

    /// Returns the next commit to test, or the outcome. Both ends are tested first: a search
    /// between ends with other verdicts than given would not find the commit.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn next_step(&self) -> Result<CommitSearchStep, GitError> {
        let ends = [(&self.new, self.old_term.opposite()), (&self.old, self.old_term)];
        for (end, expected) in ends {
            match self.result(end) {
                None => {
                    return Ok(CommitSearchStep::Test {
                        commit: end.clone(),
                        left: self.candidates()?.len(),
                    });
                }
                Some(CommitResult::Conclusive { term, .. }) if *term != expected => {
                    return Ok(CommitSearchStep::Done(CommitSearchOutcome::EndMismatch(end.clone())));
                }
                Some(CommitResult::Inconclusive(_)) => {
                    return Ok(CommitSearchStep::Done(CommitSearchOutcome::EndSkipped(end.clone())));
                }
                Some(CommitResult::Conclusive { .. } | CommitResult::NotBuilt(_)) => {}
            }
        }
        let is_not_built = |end: &&String| matches!(self.result(end), Some(CommitResult::NotBuilt(_)));
        match ends.map(|(end, _)| end).into_iter().filter(is_not_built).collect::<Vec<_>>()[..] {
            [] => self.next_between(),
            [end] => Ok(CommitSearchStep::Done(CommitSearchOutcome::EndSkipped(end.clone()))),
            _ => Ok(CommitSearchStep::Done(CommitSearchOutcome::NoEndBuilds)),
        }
    }

    /// Returns the next step between two ends with the given terms.
    fn next_between(&self) -> Result<CommitSearchStep, GitError> {
        let candidates = self.candidates()?;
        let known_new = self.earliest_known_new().to_owned();
        if candidates.is_empty() {
            return Ok(CommitSearchStep::Done(CommitSearchOutcome::Found(known_new)));
        }
        let (untested, mut skipped): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|commit| self.result(commit).is_none());
        if untested.is_empty() {
            skipped.push(known_new);
            return Ok(CommitSearchStep::Done(CommitSearchOutcome::OneOf(skipped)));
        }
        let commit = untested[index_to_test(untested.len(), skipped.len())].clone();
        Ok(CommitSearchStep::Test { commit, left: untested.len() })
    }

    /// Returns the commits that may be the result besides [`Self::earliest_known_new`], the best to
    /// test first.
    fn candidates(&self) -> Result<Vec<String>, GitError> {
        let of_old = self.with_term(self.old_term).map(|tested| tested.commit.as_str());
        let old: Vec<&str> = of_old.chain([self.old.as_str()]).collect();
        self.repository.candidates(self.earliest_known_new(), &old, self.file.options.first_parent)
    }

    /// Returns the oldest commit that is known to have the term of the newer end; the newer end
    /// itself if none was tested. Each tested one is an ancestor of the one before.
    fn earliest_known_new(&self) -> &str {
        let of_new = self.with_term(self.old_term.opposite()).last();
        of_new.map_or(&self.new, |tested| &tested.commit)
    }

    fn with_term(&self, term: BisectTerm) -> impl Iterator<Item = &TestedCommit> {
        self.file.tested.iter().filter(move |tested| tested.term() == Some(term))
    }

    fn result(&self, commit: &str) -> Option<&CommitResult> {
        self.file.tested.iter().find(|tested| tested.commit == commit).map(|tested| &tested.result)
    }

    /// Returns the confidence in the outcome.
    pub fn confidence(&self) -> Confidence {
        let conclusive = |tested: &TestedCommit| match tested.result {
            CommitResult::Conclusive { term, tries } => Some((term, tries)),
            CommitResult::NotBuilt(_) | CommitResult::Inconclusive(_) => None,
        };
        let tested: Vec<(BisectTerm, Tries)> = self.file.tested.iter().filter_map(conclusive).collect();
        Confidence::estimate(&tested, self.file.options.tries, self.file.options.bad_if)
    }
}

/// Returns the index of the candidate to test, of `untested` ones, the best one first.
///
/// The neighbours of a commit that does not build often do not build either. After `skipped` ones,
/// the index is therefore somewhere else. Better candidates are preferred, as by git's `skip`
/// (`skip_away` in git's bisect.c), but the choice is not random.
fn index_to_test(untested: usize, skipped: usize) -> usize {
    let share = (skipped as f64 * GOLDEN_RATIO).fract().powf(1.5);
    ((untested as f64 * share) as usize).min(untested - 1)
}

/// Returns the approximate number of tests that remain if every commit builds.
pub(super) fn remaining_tests(left: usize) -> u32 {
    (left + 1).next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_away_from_skipped_ones_are_preferred() {
        assert_eq!(index_to_test(40, 0), 0);
        let after_skips: Vec<usize> = (1..=5).map(|skipped| index_to_test(40, skipped)).collect();
        assert_eq!(after_skips, [19, 4, 31, 12, 1]);
        assert_eq!(index_to_test(1, 3), 0);
    }

    #[test]
    fn remaining_tests_are_the_logarithm_of_the_commits() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 40].map(remaining_tests), [0, 1, 2, 2, 3, 3, 4, 6]);
    }
}
