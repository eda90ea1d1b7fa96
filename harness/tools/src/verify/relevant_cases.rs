//! Selection of the cases for an issue.

use std::sync::Arc;

use evictlab_case::{LoadedCase, Upstream};

/// Returns the cases that have one of the issues as a known bug, or all cases if no case has.
/// Other cases that name an issue have the same result on every kubelet.
pub fn relevant_cases(cases: Vec<Arc<LoadedCase>>, issues: &[Upstream]) -> Vec<Arc<LoadedCase>> {
    let has_known_bug = |case: &Arc<LoadedCase>| {
        let mut bugs = case.case.known_bugs.iter().filter_map(|bug| bug.upstream.as_ref());
        bugs.any(|bug| issues.contains(bug))
    };
    if cases.iter().any(has_known_bug) { cases.into_iter().filter(has_known_bug).collect() } else { cases }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_case::select::{Selection, select};
    use evictlab_case::{BuiltInCase, Source};

    #[test]
    fn prefers_cases_with_the_known_bug() {
        let case = |name: &str, more: &str| {
            let text = format!(
                "{{name: {name}, about: b., upstream: [a/b#7], pods: [{{metadata: {{name: a}}, spec: {{containers: [{{name: c, image: 'agnhost:2.52'}}]}}}}], expect: {{evicted: []}}{more}}}"
            );
            BuiltInCase { path: format!("s/{name}.yaml").leak(), text: text.leak(), json: None }
        };
        let bug = ", known-bugs: [{kubelet: '<1.32', upstream: a/b#7, evicted: [], about: It is.}]";
        let files = vec![case("shows", bug), case("leads-up", "")].leak();
        let all = select(&Source::BuiltIn(files), &Selection::default()).unwrap();
        let names = |issue: &str| {
            let selected = relevant_cases(all.clone(), &[issue.parse().unwrap()]);
            selected.iter().map(|case| case.case.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("a/b#7"), ["shows"]);
        assert_eq!(names("a/b#8"), ["leads-up", "shows"]);
    }
}
