//! What to try next, and what is known by then.

use super::{Candidate, Course, Standing};
use crate::cluster::OLDEST_KUBELET;

/// How many kubelets share a cluster at most: each is a node of a host that may be small.
const AT_ONCE: usize = 5;

/// What a kubelet was seen to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A verdict that tells, and the words of the verdict.
    Told(Standing, String),
    /// None that tells, in so many tries, and why.
    Nothing(String),
    /// None: the kubelet cannot be had, and why.
    NotHad(String),
}

/// What is known of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: it was not tried.
    No,
    /// What it answered in a cluster, counted from 1.
    Answered {
        /// The answer.
        answer: Answer,
        /// The cluster.
        boot: usize,
    },
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Places in the course: the last kubelet that is as the first one is, and the first that is not. What lies between them told nothing.
    Found {
        /// The last that is as the first of the course.
        last: usize,
        /// The first that differs.
        first: usize,
    },
    /// An end is not what it was said to be.
    NotAsSaid(usize),
    /// An end told nothing.
    Untold(usize),
}

/// A search in a course.
#[derive(Clone, Debug)]
pub struct Search {
    /// From old to new.
    pub course: Course,
    /// What is known of each.
    pub known: Vec<Known>,
    /// How many clusters there were so far.
    pub boots: usize,
}

impl Search {
    /// Nothing is known yet.
    pub fn new(course: Course) -> Self {
        let known = vec![Known::No; course.candidates.len()];
        Self { course, known, boots: 0 }
    }

    /// Tries cluster after cluster until it is over. `boot` is given the number of the cluster and the candidates that share it, and answers for each of them.
    ///
    /// # Errors
    /// As `boot`.
    pub async fn run<E>(
        &mut self,
        mut boot: impl AsyncFnMut(usize, &[Candidate]) -> Result<Vec<Answer>, E>,
    ) -> Result<Outcome, E> {
        loop {
            let places = match self.next() {
                Ok(places) => places,
                Err(outcome) => return Ok(outcome),
            };
            let candidates: Vec<_> =
                places.iter().map(|place| self.course.candidates[*place].clone()).collect();
            let answers = boot(self.boots + 1, &candidates).await?;
            let made = answers.iter().any(|answer| !matches!(answer, Answer::NotHad(_)));
            self.boots += usize::from(made);
            for (place, answer) in places.into_iter().zip(answers) {
                self.known[place] = Known::Answered { answer, boot: self.boots };
            }
        }
    }

    /// What was seen of a candidate; what was said of an end counts until it was tried.
    fn standing(&self, place: usize) -> Option<Standing> {
        match &self.known[place] {
            Known::Answered { answer: Answer::Told(standing, _), .. } => Some(*standing),
            Known::Answered { .. } => None,
            Known::No if place == 0 => Some(self.course.first),
            Known::No if place + 1 == self.known.len() => Some(self.course.last()),
            Known::No => None,
        }
    }

    fn is_untried(&self, place: usize) -> bool {
        self.known[place] == Known::No
    }

    /// The places of the candidates that share the next cluster, or how the search ended.
    fn next(&self) -> Result<Vec<usize>, Outcome> {
        let end = self.known.len() - 1;
        for (place, said) in [(0, self.course.first), (end, self.course.last())] {
            match self.standing(place) {
                None => return Err(Outcome::Untold(place)),
                Some(standing) if standing != said => return Err(Outcome::NotAsSaid(place)),
                Some(_) => {}
            }
        }
        let differs = |place: &usize| self.standing(*place) == Some(self.course.last());
        let first = (0..=end).find(differs).unwrap_or(end);
        let last = (0..first).rev().find(|place| self.standing(*place) == Some(self.course.first));
        let last = last.unwrap_or(0);
        let inside: Vec<usize> = (last + 1..first).filter(|place| self.is_untried(*place)).collect();
        let ends: Vec<usize> = [last, first].into_iter().filter(|place| self.is_untried(*place)).collect();
        let mut places = self.best(&inside, &ends);
        for place in ends {
            if places.len() < AT_ONCE && self.share(&places, place) {
                places.push(place);
            }
        }
        places.sort_unstable();
        if places.is_empty() { Err(Outcome::Found { last, first }) } else { Ok(places) }
    }

    /// Of the untried candidates between the two that are known to differ, those that share a cluster and leave the fewest to be tried in the worst
    /// case; of such as leave equally many, those whose cluster takes more of the untried ends.
    fn best(&self, inside: &[usize], ends: &[usize]) -> Vec<usize> {
        let cost = |(chosen, whole): (Vec<usize>, usize)| {
            let places: Vec<usize> = chosen.iter().map(|at| inside[*at]).collect();
            let with = ends.iter().filter(|end| self.share(&places, **end)).count();
            ((widest_gap(&chosen, whole), usize::MAX - with), places)
        };
        let windows = (0..inside.len()).map(|oldest| {
            let window =
                inside[oldest..].iter().take_while(|place| self.share(&inside[oldest..=oldest], **place));
            let chosen = spread(window.count()).into_iter().map(|at| oldest + at).collect();
            (chosen, inside.len())
        });
        windows.map(cost).min_by_key(|(cost, _)| *cost).map(|(_, places)| places).unwrap_or_default()
    }

    /// Whether a candidate can share a cluster with these: the API server, of the newest of them, takes kubelets so much older.
    fn share(&self, places: &[usize], another: usize) -> bool {
        let minor = |place: usize| self.course.candidates[place].version.minor;
        places.iter().all(|place| minor(*place).abs_diff(minor(another)) <= OLDEST_KUBELET)
    }
}

impl Course {
    /// What was said of the last.
    pub fn last(&self) -> Standing {
        match self.first {
            Standing::Good => Standing::Bad,
            Standing::Bad => Standing::Good,
        }
    }
}

/// Of so many in a row, those to be tried at once: all, or as many as share a cluster, evenly spread.
fn spread(count: usize) -> Vec<usize> {
    let tried = count.min(AT_ONCE);
    if tried == count {
        return (0..count).collect();
    }
    (1..=tried).map(|nth| nth * (count + 1) / (tried + 1) - 1).collect()
}

/// How many of `whole` in a row are left to be tried at worst when these were.
fn widest_gap(tried: &[usize], whole: usize) -> usize {
    let mut from = 0;
    let mut widest = 0;
    for at in tried.iter().copied().chain([whole]) {
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
    use crate::bisect::ordered;

    pub fn release(version: &str) -> Candidate {
        Candidate {
            name: version.to_owned(),
            spec: version.parse().unwrap(),
            version: version.parse().unwrap(),
        }
    }

    pub fn binary(path: &str, version: &str) -> Candidate {
        Candidate { name: path.to_owned(), ..release(version) }
    }

    fn course(versions: &[&str]) -> Course {
        let ends = [versions[0], versions[versions.len() - 1]].map(release);
        let [old, new] = ends;
        ordered(new, old, versions.iter().map(|version| release(version)).collect()).unwrap()
    }

    /// Runs a search in which `bad` says whether a place is bad, none for one that tells nothing. Gives the outcome and what shared each cluster.
    fn searched(course: Course, bad: impl Fn(&str) -> Option<bool>) -> (Outcome, Vec<Vec<String>>) {
        let mut search = Search::new(course);
        let mut boots = vec![];
        let outcome = search
            .run(async |_, candidates: &[Candidate]| {
                boots.push(candidates.iter().map(|candidate| candidate.name.clone()).collect());
                let answer = |candidate: &Candidate| match bad(&candidate.name) {
                    Some(true) => Answer::Told(Standing::Bad, "reproduced".to_owned()),
                    Some(false) => Answer::Told(Standing::Good, "passed".to_owned()),
                    None => Answer::Nothing("killed for memory".to_owned()),
                };
                Ok::<_, Infallible>(candidates.iter().map(answer).collect())
            })
            .now_or_never()
            .unwrap()
            .unwrap();
        (outcome, boots)
    }

    #[test]
    fn three_versions_need_one_cluster() {
        let course = course(&["v1.31.14", "v1.32.13", "v1.36.2"]);
        let (outcome, boots) = searched(course, |name| Some(name < "v1.32"));
        assert_eq!(outcome, Outcome::Found { last: 0, first: 1 });
        assert_eq!(boots, [["v1.31.14", "v1.32.13"]], "1.36 is too new for their cluster, and not needed");
    }

    #[test]
    fn the_first_that_differs_is_found_wherever_it_is() {
        let versions: Vec<String> = (27..=37).map(|minor| format!("v1.{minor}.0")).collect();
        let names: Vec<&str> = versions.iter().map(String::as_str).collect();
        for (first, changed) in versions.iter().enumerate().skip(1) {
            let (outcome, boots) = searched(course(&names), |name| Some(*name < **changed));
            assert_eq!(outcome, Outcome::Found { last: first - 1, first });
            assert!(boots.len() <= 3, "{boots:?}");
            for boot in &boots {
                let minor = |name: &String| name[3..5].parse::<u32>().unwrap();
                assert!(minor(&boot[boot.len() - 1]) - minor(&boot[0]) <= OLDEST_KUBELET, "{boot:?}");
            }
        }
    }

    #[test]
    fn many_of_one_minor_are_tried_five_at_a_time() {
        let all: Vec<Candidate> = (0..30).map(|n| binary(&format!("./{n:02}"), "v1.33.0")).collect();
        let course = ordered(all[29].clone(), all[0].clone(), all).unwrap();
        let (outcome, boots) = searched(course, |name| Some(name < "./17"));
        assert_eq!(outcome, Outcome::Found { last: 16, first: 17 });
        assert!(boots.len() <= 2 && boots.iter().all(|boot| boot.len() <= 5), "{boots:?}");
    }

    #[test]
    fn what_tells_nothing_is_passed_over_and_stands_between() {
        let course = course(&["v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0"]);
        let (outcome, _) = searched(course, |name| (name != "v1.31.0").then_some(name < "v1.32"));
        assert_eq!(outcome, Outcome::Found { last: 0, first: 2 });
    }

    #[test]
    fn kubelets_that_cannot_be_had_make_no_cluster() {
        let mut search = Search::new(course(&["v1.27.16", "v1.31.0", "v1.36.2"]));
        let outcome = search.run(async |_, candidates: &[Candidate]| {
            let answer = |candidate: &Candidate| match candidate.version.minor {
                31 => Answer::NotHad("it is not in Docker".to_owned()),
                minor => Answer::Told(if minor < 31 { Standing::Bad } else { Standing::Good }, String::new()),
            };
            Ok::<_, Infallible>(candidates.iter().map(answer).collect())
        });
        assert_eq!(outcome.now_or_never().unwrap().unwrap(), Outcome::Found { last: 0, first: 2 });
        assert_eq!(search.boots, 2, "those of the ends, each by itself");
    }

    #[test]
    fn an_end_that_is_not_as_said_ends_it() {
        let versions = ["v1.31.14", "v1.32.13"];
        assert_eq!(searched(course(&versions), |_| Some(false)).0, Outcome::NotAsSaid(0));
        assert_eq!(searched(course(&versions), |_| Some(true)).0, Outcome::NotAsSaid(1));
        assert_eq!(searched(course(&versions), |_| None).0, Outcome::Untold(0));
        // Far apart, so that each is tried by itself.
        let (outcome, boots) = searched(course(&["v1.27.16", "v1.36.2"]), |name| Some(name < "v1.30"));
        assert_eq!((outcome, boots.len()), (Outcome::Found { last: 0, first: 1 }, 2));
    }

    #[test]
    fn those_that_are_tried_are_spread_evenly() {
        assert_eq!(spread(3), [0, 1, 2]);
        assert_eq!(spread(28), [3, 8, 13, 18, 23]);
        assert_eq!(widest_gap(&[3, 8, 13, 18, 23], 28), 4);
    }
}
