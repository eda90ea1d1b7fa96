//! The kubelets of a search, from old to new.

use std::cmp::Ordering;

use super::candidate::{BisectTerm, KubeletCandidate};

/// The kubelets of a search. The verdicts at both ends are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRange {
    /// Kubelets from old to new, at least two.
    pub candidates: Vec<KubeletCandidate>,
    /// Given term of the oldest kubelet; the newest one has the opposite.
    pub old_term: BisectTerm,
}

impl SearchRange {
    /// Returns the range from the good to the bad kubelet, or vice versa. `candidates` may contain
    /// the ends; it orders kubelets of the same version from old to new.
    ///
    /// # Errors
    ///
    /// Two candidates cannot be ordered, or the ends are equal.
    pub fn between(
        good: KubeletCandidate,
        bad: KubeletCandidate,
        candidates: Vec<KubeletCandidate>,
    ) -> Result<Self, SearchRangeError> {
        if good.name == bad.name {
            return Err(SearchRangeError::SameKubelet(good.name));
        }
        let mut all = candidates;
        for end in [&good, &bad] {
            if all.iter().all(|other| other.name != end.name) {
                // A kubelet that is not in the list is placed by its version.
                if let Some(other) =
                    all.iter().find(|other| other.version.cmp_precedence(&end.version) == Ordering::Equal)
                {
                    return Err(same_version(other, end));
                }
                all.push(end.clone());
            }
        }
        // The sort is stable: kubelets of one version keep their order.
        all.sort_by(|one, other| one.version.cmp_precedence(&other.version));
        let index =
            |end: &KubeletCandidate| all.iter().position(|other| other.name == end.name).unwrap_or_default();
        let (good_at, bad_at) = (index(&good), index(&bad));
        let old_term = if good_at < bad_at { BisectTerm::Good } else { BisectTerm::Bad };
        let candidates = all[good_at.min(bad_at)..=good_at.max(bad_at)].to_vec();
        Ok(Self { candidates, old_term })
    }

    /// Returns the given term of the newest kubelet.
    pub fn new_term(&self) -> BisectTerm {
        self.old_term.opposite()
    }
}

/// Kubelets that do not form a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchRangeError {
    /// Two kubelets have the same version.
    #[error(
        "failed to order {one} and {other}: both are version {version}\nhelp: list the kubelets from old to new with --kubelet {one},…,{other}"
    )]
    SameVersion {
        /// Name of the first kubelet.
        one: String,
        /// Name of the other kubelet.
        other: String,
        /// Version of both.
        version: String,
    },
    /// Both ends are the same kubelet.
    #[error(
        "failed to search: --good and --bad are both {0}\nhelp: name one kubelet on which the case is good and one on which it is bad"
    )]
    SameKubelet(String),
}

fn same_version(one: &KubeletCandidate, other: &KubeletCandidate) -> SearchRangeError {
    SearchRangeError::SameVersion {
        one: one.name.clone(),
        other: other.name.clone(),
        version: other.version.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::search::tests::{binary, release};

    fn names(range: &SearchRange) -> Vec<&str> {
        range.candidates.iter().map(|candidate| candidate.name.as_str()).collect()
    }

    #[test]
    fn orders_versions_and_keeps_those_in_between() {
        let between = ["v1.36.2", "v1.30.0", "v1.37.0", "v1.37.0-rc.1", "v1.32.13"].map(release).to_vec();
        let range = SearchRange::between(release("v1.37.0"), release("v1.31.14"), between.clone()).unwrap();
        assert_eq!(names(&range), ["v1.31.14", "v1.32.13", "v1.36.2", "v1.37.0-rc.1", "v1.37.0"]);
        assert_eq!(range.old_term, BisectTerm::Bad);
        let range = SearchRange::between(release("v1.31.14"), release("v1.36.2"), between).unwrap();
        assert_eq!(
            (names(&range), range.old_term),
            (vec!["v1.31.14", "v1.32.13", "v1.36.2"], BisectTerm::Good)
        );
    }

    #[test]
    fn keeps_the_order_of_binaries_of_one_version() {
        let [a, b, c] = ["./a", "./b", "./c"].map(|name| binary(name, "v1.33.0-alpha.1+5"));
        let range =
            SearchRange::between(c.clone(), a.clone(), vec![a.clone(), b.clone(), c.clone()]).unwrap();
        assert_eq!((names(&range), range.old_term), (vec!["./a", "./b", "./c"], BisectTerm::Bad));
        let error = SearchRange::between(a.clone(), c.clone(), vec![]).unwrap_err();
        assert_eq!(
            error,
            SearchRangeError::SameVersion {
                one: "./a".into(),
                other: "./c".into(),
                version: "v1.33.0-alpha.1+5".into()
            }
        );
        let other = binary("./d", "v1.33.0-alpha.1+6");
        let error = SearchRange::between(a.clone(), other, vec![a.clone(), b]).unwrap_err();
        assert_eq!(
            error,
            SearchRangeError::SameVersion {
                one: "./a".into(),
                other: "./d".into(),
                version: "v1.33.0-alpha.1+6".into()
            }
        );
        assert_eq!(
            SearchRange::between(a.clone(), a, vec![]).unwrap_err(),
            SearchRangeError::SameKubelet("./a".into())
        );
    }
}
