//! The search: which candidates share the next cluster, and the outcomes.

use std::cmp::Reverse;
use std::iter::repeat_with;

use super::candidate::{BisectTerm, KubeletCandidate};
use super::search_range::SearchRange;
use evictlab_cluster::MAX_KUBELET_SKEW;

/// Maximum number of kubelets in a cluster: each is a node, and the host may be small.
const MAX_KUBELETS_PER_CLUSTER: usize = 5;

/// Outcome of testing a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// A conclusive verdict and its name.
    Conclusive(BisectTerm, String),
    /// No conclusive verdict in any attempt, with the reason.
    Inconclusive(String),
    /// The kubelet is not available, with the reason.
    Unavailable(String),
}

/// State of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateState {
    /// Not tested.
    Untested,
    /// Tested.
    Tested {
        /// The outcome.
        outcome: ProbeOutcome,
        /// Number of the cluster, from 1; of an unavailable kubelet, the number that its cluster
        /// would have.
        cluster: usize,
    },
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeletSearchOutcome {
    /// The verdict changes between two kubelets. Kubelets in between are inconclusive.
    Found {
        /// Index of the last kubelet with the term of the older end.
        last_old: usize,
        /// Index of the first kubelet with the term of the newer end.
        first_new: usize,
    },
    /// An end has another term than given.
    EndMismatch(usize),
    /// An end is inconclusive.
    EndInconclusive(usize),
}

/// The next step of a search.
enum KubeletSearchStep {
    /// Test the candidates with these indices in one cluster.
    Test(Vec<usize>),
    /// The search has ended.
    Done(KubeletSearchOutcome),
}

/// A search in a range of kubelets.
#[derive(Clone, Debug)]
pub struct KubeletSearch {
    /// The kubelets from old to new.
    pub range: SearchRange,
    /// State of each kubelet.
    pub states: Vec<CandidateState>,
    /// Number of clusters so far.
    pub clusters: usize,
}

impl KubeletSearch {
    /// Returns a search without tested candidates.
    pub fn new(range: SearchRange) -> Self {
        let states = vec![CandidateState::Untested; range.candidates.len()];
        Self { range, states, clusters: 0 }
    }

    /// Tests candidates, one cluster after the other, until the search ends. `test` gets the number
    /// of the cluster and its candidates, and returns an outcome for each; a candidate without an
    /// outcome is inconclusive.
    ///
    /// # Errors
    ///
    /// Those of `test`.
    pub async fn run<E>(
        &mut self,
        mut test: impl AsyncFnMut(usize, &[KubeletCandidate]) -> Result<Vec<ProbeOutcome>, E>,
    ) -> Result<KubeletSearchOutcome, E> {
        loop {
            let indices = match self.next_step() {
                KubeletSearchStep::Test(indices) => indices,
                KubeletSearchStep::Done(outcome) => return Ok(outcome),
            };
            let candidates: Vec<_> =
                indices.iter().map(|index| self.range.candidates[*index].clone()).collect();
            let number = self.clusters + 1;
            let outcomes = test(number, &candidates).await?;
            // The test of unavailable kubelets does not create a cluster: the next one has the
            // number.
            if outcomes.iter().any(|outcome| !matches!(outcome, ProbeOutcome::Unavailable(_))) {
                self.clusters = number;
            }
            // A candidate that stays untested would be tested for ever.
            let missing = repeat_with(|| ProbeOutcome::Inconclusive("no verdict".to_owned()));
            for (index, outcome) in indices.into_iter().zip(outcomes.into_iter().chain(missing)) {
                self.states[index] = CandidateState::Tested { outcome, cluster: number };
            }
        }
    }

    /// Returns the observed term of a candidate, or the given one for an untested end.
    fn term(&self, index: usize) -> Option<BisectTerm> {
        match &self.states[index] {
            CandidateState::Tested { outcome: ProbeOutcome::Conclusive(term, _), .. } => Some(*term),
            CandidateState::Tested { .. } => None,
            CandidateState::Untested if index == 0 => Some(self.range.old_term),
            CandidateState::Untested if index + 1 == self.states.len() => Some(self.range.new_term()),
            CandidateState::Untested => None,
        }
    }

    fn is_untested(&self, index: usize) -> bool {
        self.states[index] == CandidateState::Untested
    }

    /// Returns the candidates for the next cluster, or the result of the search.
    fn next_step(&self) -> KubeletSearchStep {
        let end = self.states.len() - 1;
        for (index, given) in [(0, self.range.old_term), (end, self.range.new_term())] {
            match self.term(index) {
                None => return KubeletSearchStep::Done(KubeletSearchOutcome::EndInconclusive(index)),
                Some(term) if term != given => {
                    return KubeletSearchStep::Done(KubeletSearchOutcome::EndMismatch(index));
                }
                Some(_) => {}
            }
        }
        let has = |index: &usize, term| self.term(*index) == Some(term);
        let first_new = (0..=end).find(|index| has(index, self.range.new_term())).unwrap_or(end);
        let last_old = (0..first_new).rfind(|index| has(index, self.range.old_term)).unwrap_or(0);
        let inside: Vec<usize> = (last_old + 1..first_new).filter(|index| self.is_untested(*index)).collect();
        let ends: Vec<usize> =
            [last_old, first_new].into_iter().filter(|index| self.is_untested(*index)).collect();
        let mut indices = self.choose(&inside, &ends);
        indices.extend(self.fitting_ends(&indices, &ends));
        indices.sort_unstable();
        if indices.is_empty() {
            KubeletSearchStep::Done(KubeletSearchOutcome::Found { last_old, first_new })
        } else {
            KubeletSearchStep::Test(indices)
        }
    }

    /// Chooses candidates from `inside`, the untested ones between the two that are known to
    /// differ, that can share a cluster and leave the fewest candidates in the worst case; among
    /// equals, those whose cluster also has room for more of the untested `ends`.
    fn choose(&self, inside: &[usize], ends: &[usize]) -> Vec<usize> {
        let choices = (0..inside.len()).map(|oldest| {
            let window =
                inside[oldest..].iter().take_while(|index| self.can_share(&inside[oldest..=oldest], **index));
            let places: Vec<usize> =
                spread_evenly(window.count()).into_iter().map(|place| oldest + place).collect();
            let indices: Vec<usize> = places.iter().map(|place| inside[*place]).collect();
            Choice {
                gap: widest_gap(&places, inside.len()),
                ends: self.fitting_ends(&indices, ends).len(),
                indices,
            }
        });
        let best = choices.min_by_key(|choice| (choice.gap, Reverse(choice.ends)));
        best.map(|choice| choice.indices).unwrap_or_default()
    }

    /// Returns those of `ends` for which the cluster of the candidates `indices` has room.
    fn fitting_ends(&self, indices: &[usize], ends: &[usize]) -> Vec<usize> {
        let mut all = indices.to_vec();
        for end in ends {
            if all.len() < MAX_KUBELETS_PER_CLUSTER && self.can_share(&all, *end) {
                all.push(*end);
            }
        }
        all.split_off(indices.len())
    }

    /// Returns whether a candidate can share a cluster with the others: the API server has the
    /// newest version and supports only kubelets that are up to `MAX_KUBELET_SKEW` minors older.
    fn can_share(&self, indices: &[usize], another: usize) -> bool {
        let minor = |index: usize| self.range.candidates[index].version.minor;
        indices.iter().all(|index| minor(*index).abs_diff(minor(another)) <= MAX_KUBELET_SKEW)
    }
}

/// Candidates that can share a cluster.
struct Choice {
    indices: Vec<usize>,
    /// Number of candidates that remain in the worst case.
    gap: usize,
    /// Number of untested ends for which the cluster has room.
    ends: usize,
}

/// Returns the indices to test of `count` candidates: all, or as many as share a cluster, evenly
/// spread.
fn spread_evenly(count: usize) -> Vec<usize> {
    let tested = count.min(MAX_KUBELETS_PER_CLUSTER);
    if tested == count {
        return (0..count).collect();
    }
    (1..=tested).map(|nth| nth * (count + 1) / (tested + 1) - 1).collect()
}

/// Returns how many of `whole` candidates remain in the worst case after testing `tested`.
fn widest_gap(tested: &[usize], whole: usize) -> usize {
    let mut from = 0;
    let mut widest = 0;
    for at in tested.iter().copied().chain([whole]) {
        widest = widest.max(at - from);
        from = at + 1;
    }
    widest
}

#[cfg(test)]
pub(super) mod tests {
    use std::convert::Infallible;

    use futures::FutureExt;

    use super::*;
    use crate::bisect::search_range::SearchRange;

    pub(crate) fn release(version: &str) -> KubeletCandidate {
        KubeletCandidate {
            name: version.to_owned(),
            spec: version.parse().unwrap(),
            version: version.parse().unwrap(),
        }
    }

    pub(crate) fn binary(path: &str, version: &str) -> KubeletCandidate {
        KubeletCandidate { name: path.to_owned(), ..release(version) }
    }

    fn range(versions: &[&str]) -> SearchRange {
        let ends = [versions[0], versions[versions.len() - 1]].map(release);
        let [old, new] = ends;
        SearchRange::between(new, old, versions.iter().map(|version| release(version)).collect()).unwrap()
    }

    /// Runs a search. `bad` returns whether a kubelet is bad, `None` for an inconclusive one.
    /// Returns the result and the kubelets of each cluster.
    fn run_search(
        range: SearchRange,
        bad: impl Fn(&str) -> Option<bool>,
    ) -> (KubeletSearchOutcome, Vec<Vec<String>>) {
        let mut search = KubeletSearch::new(range);
        let mut clusters = vec![];
        let outcome = search
            .run(async |_, candidates: &[KubeletCandidate]| {
                clusters.push(candidates.iter().map(|candidate| candidate.name.clone()).collect());
                let outcome = |candidate: &KubeletCandidate| match bad(&candidate.name) {
                    Some(true) => ProbeOutcome::Conclusive(BisectTerm::Bad, "reproduced".to_owned()),
                    Some(false) => ProbeOutcome::Conclusive(BisectTerm::Good, "passed".to_owned()),
                    None => ProbeOutcome::Inconclusive("killed for memory".to_owned()),
                };
                Ok::<_, Infallible>(candidates.iter().map(outcome).collect())
            })
            .now_or_never()
            .unwrap()
            .unwrap();
        (outcome, clusters)
    }

    #[test]
    fn three_versions_need_one_cluster() {
        let range = range(&["v1.31.14", "v1.32.13", "v1.36.2"]);
        let (outcome, clusters) = run_search(range, |name| Some(name < "v1.32"));
        assert_eq!(outcome, KubeletSearchOutcome::Found { last_old: 0, first_new: 1 });
        assert_eq!(clusters, [["v1.31.14", "v1.32.13"]], "1.36 cannot share their cluster and is not needed");
    }

    /// Two windows leave three candidates in the worst case: five kubelets without room for an end,
    /// and four kubelets with the old end.
    #[test]
    fn a_full_cluster_has_no_room_for_an_end() {
        let versions = [
            "v1.28.0", "v1.28.1", "v1.28.2", "v1.28.3", "v1.29.0", "v1.30.0", "v1.31.0", "v1.32.0",
            "v1.32.1", "v1.33.0", "v1.33.1",
        ];
        let (_, clusters) = run_search(range(&versions), |name| Some(name < "v1.30"));
        assert_eq!(clusters[0], ["v1.28.0", "v1.28.3", "v1.29.0", "v1.30.0", "v1.31.0"]);
    }

    #[test]
    fn finds_the_first_difference_at_any_position() {
        let versions: Vec<String> = (27..=37).map(|minor| format!("v1.{minor}.0")).collect();
        let names: Vec<&str> = versions.iter().map(String::as_str).collect();
        for (first, changed) in versions.iter().enumerate().skip(1) {
            let (outcome, clusters) = run_search(range(&names), |name| Some(*name < **changed));
            assert_eq!(outcome, KubeletSearchOutcome::Found { last_old: first - 1, first_new: first });
            assert!(clusters.len() <= 3, "{clusters:?}");
            for cluster in &clusters {
                let minor = |name: &String| name[3..5].parse::<u32>().unwrap();
                assert!(
                    minor(&cluster[cluster.len() - 1]) - minor(&cluster[0]) <= MAX_KUBELET_SKEW,
                    "{cluster:?}"
                );
            }
        }
    }

    #[test]
    fn tests_five_kubelets_of_one_minor_per_cluster() {
        let all: Vec<KubeletCandidate> = (0..30).map(|n| binary(&format!("./{n:02}"), "v1.33.0")).collect();
        let range = SearchRange::between(all[29].clone(), all[0].clone(), all).unwrap();
        let (outcome, clusters) = run_search(range, |name| Some(name < "./17"));
        assert_eq!(outcome, KubeletSearchOutcome::Found { last_old: 16, first_new: 17 });
        assert!(clusters.len() <= 2 && clusters.iter().all(|cluster| cluster.len() <= 5), "{clusters:?}");
    }

    #[test]
    fn skips_inconclusive_kubelets() {
        let range = range(&["v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0"]);
        let (outcome, _) = run_search(range, |name| (name != "v1.31.0").then_some(name < "v1.32"));
        assert_eq!(outcome, KubeletSearchOutcome::Found { last_old: 0, first_new: 2 });
    }

    #[test]
    fn unavailable_kubelets_need_no_cluster() {
        let mut search = KubeletSearch::new(range(&["v1.27.16", "v1.31.0", "v1.36.2"]));
        let outcome = search.run(async |_, candidates: &[KubeletCandidate]| {
            let outcome = |candidate: &KubeletCandidate| match candidate.version.minor {
                31 => ProbeOutcome::Unavailable("not in Docker".to_owned()),
                minor => ProbeOutcome::Conclusive(
                    if minor < 31 { BisectTerm::Bad } else { BisectTerm::Good },
                    String::new(),
                ),
            };
            Ok::<_, Infallible>(candidates.iter().map(outcome).collect())
        });
        assert_eq!(
            outcome.now_or_never().unwrap().unwrap(),
            KubeletSearchOutcome::Found { last_old: 0, first_new: 2 }
        );
        assert_eq!(search.clusters, 2, "one cluster for each end");
    }

    #[test]
    fn a_kubelet_without_an_outcome_is_inconclusive() {
        let mut search = KubeletSearch::new(range(&["v1.31.14", "v1.32.13"]));
        let outcome = search.run(async |_, _: &[KubeletCandidate]| Ok::<_, Infallible>(vec![]));
        assert_eq!(outcome.now_or_never().unwrap().unwrap(), KubeletSearchOutcome::EndInconclusive(0));
    }

    #[test]
    fn stops_if_an_end_has_another_verdict() {
        let versions = ["v1.31.14", "v1.32.13"];
        assert_eq!(run_search(range(&versions), |_| Some(false)).0, KubeletSearchOutcome::EndMismatch(0));
        assert_eq!(run_search(range(&versions), |_| Some(true)).0, KubeletSearchOutcome::EndMismatch(1));
        assert_eq!(run_search(range(&versions), |_| None).0, KubeletSearchOutcome::EndInconclusive(0));
        // The versions are too far apart to share a cluster.
        let (outcome, clusters) = run_search(range(&["v1.27.16", "v1.36.2"]), |name| Some(name < "v1.30"));
        assert_eq!((outcome, clusters.len()), (KubeletSearchOutcome::Found { last_old: 0, first_new: 1 }, 2));
    }

    #[test]
    fn spreads_candidates_evenly() {
        assert_eq!(spread_evenly(3), [0, 1, 2]);
        assert_eq!(spread_evenly(28), [3, 8, 13, 18, 23]);
        assert_eq!(widest_gap(&[3, 8, 13, 18, 23], 28), 4);
    }
}
