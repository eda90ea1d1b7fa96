//! Which cases tell something about an issue.

use std::sync::Arc;

use crate::case::{LoadedCase, Upstream};

/// Of cases that name these issues, those on which one of them shows as a known bug; all, where it shows on none. The others, which only lead up to it, are
/// alike on every kubelet.
pub fn about(cases: Vec<Arc<LoadedCase>>, issues: &[Upstream]) -> Vec<Arc<LoadedCase>> {
    let shows = |case: &Arc<LoadedCase>| {
        let mut bugs = case.case.known_bugs.iter().filter_map(|bug| bug.upstream.as_ref());
        bugs.any(|bug| issues.contains(bug))
    };
    match cases.iter().any(shows) {
        true => cases.into_iter().filter(shows).collect(),
        false => cases,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Source;
    use crate::select::{Selection, select};

    #[test]
    fn cases_on_which_the_bug_shows_come_before_those_that_lead_up_to_it() {
        let case = |name: &str, more: &str| {
            let text = format!(
                "{{name: {name}, about: b., upstream: [a/b#7], pods: [{{metadata: {{name: a}}, spec: {{containers: [{{name: c}}]}}}}], expect: {{}}{more}}}"
            );
            (&*format!("s/{name}.yaml").leak(), &*text.leak())
        };
        let bug = ", known-bugs: [{kubelet: '<1.32', upstream: a/b#7, evicted: [], about: It is.}]";
        let files = vec![case("shows", bug), case("leads-up", "")].leak();
        let all = select(&Source::BuiltIn(files), &Selection::default()).unwrap();
        let names = |issue: &str| {
            let told = about(all.clone(), &[issue.parse().unwrap()]);
            told.iter().map(|case| case.case.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("a/b#7"), ["shows"]);
        assert_eq!(names("a/b#8"), ["leads-up", "shows"]);
    }
}
