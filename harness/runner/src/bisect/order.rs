//! Candidates from old to new.

use std::cmp::Ordering;

use super::{Candidate, Standing};

/// Candidates from old to new. The first and the last are known by what was said of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// From old to new, two at least.
    pub candidates: Vec<Candidate>,
    /// What was said of the first; of the last, the contrary.
    pub first: Standing,
}

/// Kubelets that do not make a course.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Nobody can tell which is older.
    #[error(
        "{0} and {1} cannot be ordered: both are {2}\nName every kubelet, the oldest first, with --kubelets {0},…,{1}: those of one version are taken in that order."
    )]
    Alike(String, String, String),
    /// The ends are one.
    #[error(
        "--good and --bad are both {0}: name two kubelets, one on which the case is good and one on which it is bad"
    )]
    OneEnd(String),
}

/// The candidates between the good one and the bad one, whichever is older, with these at the ends. `between` is in the order that holds where versions do not tell; it
/// may name the ends, too.
///
/// # Errors
/// Two of them cannot be ordered.
pub fn ordered(good: Candidate, bad: Candidate, between: Vec<Candidate>) -> Result<Course, OrderError> {
    if good.name == bad.name {
        return Err(OrderError::OneEnd(good.name));
    }
    let mut all = between;
    for end in [&good, &bad] {
        if all.iter().all(|other| other.name != end.name) {
            // One that the list does not name has no place in it but by its version.
            if let Some(other) = all.iter().find(|other| other.by_version(end) == Ordering::Equal) {
                return Err(alike(other, end));
            }
            all.push(end.clone());
        }
    }
    // Stable: what is of one version stays as it was listed.
    all.sort_by(Candidate::by_version);
    let place = |end: &Candidate| all.iter().position(|other| other.name == end.name).unwrap_or_default();
    let (good_at, bad_at) = (place(&good), place(&bad));
    let first = if good_at < bad_at { Standing::Good } else { Standing::Bad };
    let candidates = all[good_at.min(bad_at)..=good_at.max(bad_at)].to_vec();
    Ok(Course { candidates, first })
}

fn alike(one: &Candidate, other: &Candidate) -> OrderError {
    OrderError::Alike(one.name.clone(), other.name.clone(), other.version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::search::tests::{binary, release};

    fn names(course: &Course) -> Vec<&str> {
        course.candidates.iter().map(|candidate| candidate.name.as_str()).collect()
    }

    #[test]
    fn versions_are_ordered_and_only_those_between_stay() {
        let between = ["v1.36.2", "v1.30.0", "v1.37.0", "v1.37.0-rc.1", "v1.32.13"].map(release).to_vec();
        let course = ordered(release("v1.37.0"), release("v1.31.14"), between.clone()).unwrap();
        assert_eq!(names(&course), ["v1.31.14", "v1.32.13", "v1.36.2", "v1.37.0-rc.1", "v1.37.0"]);
        assert_eq!(course.first, Standing::Bad);
        let course = ordered(release("v1.31.14"), release("v1.36.2"), between).unwrap();
        assert_eq!((names(&course), course.first), (vec!["v1.31.14", "v1.32.13", "v1.36.2"], Standing::Good));
    }

    #[test]
    fn binaries_of_one_version_are_taken_as_listed() {
        let [a, b, c] = ["./a", "./b", "./c"].map(|name| binary(name, "v1.33.0-alpha.1+5"));
        let course = ordered(c.clone(), a.clone(), vec![a.clone(), b.clone(), c.clone()]).unwrap();
        assert_eq!((names(&course), course.first), (vec!["./a", "./b", "./c"], Standing::Bad));
        let error = ordered(a.clone(), c.clone(), vec![]).unwrap_err();
        assert_eq!(error, OrderError::Alike("./a".into(), "./c".into(), "v1.33.0-alpha.1+5".into()));
        let other = binary("./d", "v1.33.0-alpha.1+6");
        let error = ordered(a.clone(), other, vec![a.clone(), b]).unwrap_err();
        assert_eq!(error, OrderError::Alike("./a".into(), "./d".into(), "v1.33.0-alpha.1+6".into()));
        assert_eq!(ordered(a.clone(), a, vec![]).unwrap_err(), OrderError::OneEnd("./a".into()));
    }
}
