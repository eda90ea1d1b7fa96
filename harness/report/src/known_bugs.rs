//! Known bugs that a run reproduced or found fixed, each with the range of kubelets.

use unicode_width::UnicodeWidthStr;

use crate::run_state::RunState;
use crate::text::{count_noun, inert_markdown, marked_ranges};
use evictlab_judge::Verdict;

/// Prefix of the issues that a terminal shows by their number alone.
const KUBERNETES: &str = "kubernetes/kubernetes";

/// A known bug with all cases and kubelets of a run that reproduced it, or that found it fixed.
#[derive(Debug)]
pub(crate) struct ObservedBug<'a> {
    /// The issue, or a description of the bug.
    pub name: &'a str,
    is_fixed: bool,
    cases: Vec<String>,
    kubelets: Vec<&'a str>,
}

/// Returns the known bugs of a run: reproduced ones, then fixed ones, each by their number.
pub(crate) fn known_bugs(state: &RunState) -> Vec<ObservedBug<'_>> {
    let mut bugs: Vec<ObservedBug<'_>> = vec![];
    for ended in &state.ended {
        let (id, result) = (&ended.id, &ended.result);
        let is_fixed = match result.verdict {
            Verdict::Reproduced => false,
            Verdict::Fixed => true,
            _ => continue,
        };
        let name = result.known_bug.as_deref().unwrap_or("a known bug");
        let same = |bug: &ObservedBug<'_>| bug.name == name && bug.is_fixed == is_fixed;
        let place = bugs.iter().position(same).unwrap_or_else(|| {
            bugs.push(ObservedBug { name, is_fixed, cases: vec![], kubelets: vec![] });
            bugs.len() - 1
        });
        let (case, bug) = (id.suite_and_case(), &mut bugs[place]);
        if !bug.cases.contains(&case) {
            bug.cases.push(case);
        }
        if !bug.kubelets.contains(&id.kubelet.as_str()) {
            bug.kubelets.push(&id.kubelet);
        }
    }
    bugs.iter_mut().for_each(|bug| bug.cases.sort());
    bugs.sort_by_key(|bug| {
        let (repository, number) = bug.name.split_once('#').unwrap_or((bug.name, ""));
        (bug.is_fixed, repository, number.parse::<u64>().ok())
    });
    bugs
}

/// Name of a bug whose description does not fit into its line.
const WITHOUT_ISSUE: &str = "a bug without an issue";

/// Returns the words of a text on indented lines of this width, each after a line break.
fn indented(text: &str, columns: usize) -> String {
    let (mut lines, mut width) = (String::new(), columns);
    for word in text.split_whitespace() {
        if width + 1 + word.width() > columns {
            lines.push_str("\n  ");
            width = 0;
        } else {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.width();
    }
    lines
}

impl ObservedBug<'_> {
    /// Renders the bug in one line of this width, if possible: names only the first of several
    /// cases. A long description of a bug without an issue follows on lines of its own.
    pub(crate) fn render_within(&self, state: &RunState, columns: usize) -> String {
        let name = self.short_name().trim_end_matches('.');
        let all = self.render(state, name);
        if all.width() <= columns {
            return all;
        }
        let has_issue = self.name.contains('#');
        let name = if has_issue { name } else { WITHOUT_ISSUE };
        let mut line = self.render(state, name);
        if line.width() > columns && self.cases.len() > 1 {
            let others = count_noun(self.cases.len() - 1, "other case");
            line = self.render_with(state, name, &format!("{} and {others}", self.cases[0]));
        }
        if !has_issue {
            line.push_str(&indented(&inert_markdown(self.name.trim_end()), columns));
        }
        line
    }

    /// Renders the bug in one line of Markdown: `reproduced: #132001 on v1.27 to v1.36, 10 kubelets
    /// (message/a)`. `name` is its name for the reader.
    pub(crate) fn render(&self, state: &RunState, name: &str) -> String {
        self.render_with(state, name, &self.cases.join(", "))
    }

    fn render_with(&self, state: &RunState, name: &str, cases: &str) -> String {
        let name = inert_markdown(name.trim_end_matches('.'));
        let kubelets = self.kubelet_range(state);
        if self.is_fixed {
            format!("fixed: {name} does not occur on {kubelets}; narrow `known-bugs` of {cases}")
        } else {
            format!("reproduced: {name} on {kubelets} ({cases})")
        }
    }

    /// The name without the repository, if the repository is that of Kubernetes.
    pub(crate) fn short_name(&self) -> &str {
        self.name.strip_prefix(KUBERNETES).filter(|number| number.starts_with('#')).unwrap_or(self.name)
    }

    /// The kubelets as ranges; a range leaves out kubelets on which every case was skipped.
    fn kubelet_range(&self, state: &RunState) -> String {
        if let [one] = self.kubelets[..] {
            return one.to_owned();
        }
        let has_run = |kubelet: &&String| {
            let of_bug = |case: &String| {
                state.ended.iter().any(|ended| {
                    let id = &ended.id;
                    id.kubelet == **kubelet
                        && ended.result.verdict != Verdict::Skipped
                        && case.split_once('/') == Some((&id.suite, &id.case))
                })
            };
            self.cases.iter().any(of_bug)
        };
        let kubelets = state.run.iter().flat_map(|run| &run.kubelets).filter(has_run);
        let marked = kubelets.map(|label| (state.row_name(label), self.kubelets.contains(&label.as_str())));
        format!("{}, {}", marked_ranges(marked), count_noun(self.kubelets.len(), "kubelet"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{RunEventKind, fixtures};
    use evictlab_judge::CaseResult;

    const KUBELETS: [&str; 6] = ["v1.27.16", "v1.28.15", "v1.29.15", "v1.30.14", "v1.31.14", "v1.32.13"];

    /// Returns the state of a run, with a letter for each kubelet: `r` reproduced, `x` fixed, `.`
    /// passed, `-` skipped.
    fn state(rows: &[(&str, &str, &str)]) -> RunState {
        let cases: Vec<&str> = rows.iter().map(|(case, ..)| *case).collect();
        let mut events = vec![fixtures::run_started(&KUBELETS, &cases)];
        for (case, bug, verdicts) in rows {
            for (kubelet, symbol) in KUBELETS.iter().zip(verdicts.chars()) {
                let verdict = crate::symbols::verdict(symbol).unwrap();
                let mut ended = fixtures::case_ended(case, kubelet, 1, verdict, "why");
                if let RunEventKind::CaseEnded { result, .. } = &mut ended {
                    let known_bug = Some((*bug).to_owned());
                    *result =
                        Arc::new(CaseResult { known_bug, ..CaseResult::without_evidence(verdict, "why") });
                }
                events.push(ended);
            }
        }
        let events: Vec<_> = events.into_iter().map(|kind| fixtures::event(0.0, kind)).collect();
        fixtures::state_after(&events)
    }

    fn rendered(rows: &[(&str, &str, &str)]) -> Vec<String> {
        let state = state(rows);
        known_bugs(&state).iter().map(|bug| bug.render(&state, bug.short_name())).collect()
    }

    #[test]
    fn long_lines_are_shortened() {
        let about =
            "The kubelet evicts a second pod before it has measured the memory that the first one freed.";
        let state = state(&[
            ("b", about, "rr...."),
            ("a", about, "rr...."),
            ("c", "kubernetes/kubernetes#9", "r...."),
        ]);
        let within = |columns| {
            let bugs = known_bugs(&state);
            bugs.iter().map(|bug| bug.render_within(&state, columns)).collect::<Vec<_>>()
        };
        let cases = "on v1.27, v1.28, 2 kubelets (message/a, message/b)";
        let full = format!("reproduced: {} {cases}", about.trim_end_matches('.'));
        assert!(within(200).contains(&full), "{:?}", within(200));
        for (columns, cases) in [(120, "message/a, message/b"), (80, "message/a and 1 other case")] {
            let line = within(columns).into_iter().find(|line| line.contains("The kubelet")).unwrap();
            let (first, description) = line.split_once("\n").unwrap();
            let expected = "reproduced: a bug without an issue on v1.27, v1.28, 2 kubelets";
            assert_eq!(first, format!("{expected} ({cases})"));
            assert_eq!(description.split_whitespace().collect::<Vec<_>>().join(" "), about);
            let is_short = |line: &str| line.starts_with("  ") && line.width() <= columns + 2;
            assert!(description.lines().all(is_short), "{line}");
        }
        assert!(
            within(20).contains(&"reproduced: #9 on v1.27.16 (message/c)".to_owned()),
            "{:?}",
            within(20)
        );
    }

    #[test]
    fn kubelets_of_a_bug_are_ranges() {
        const BUG: &str = "kubernetes/kubernetes#9";
        for (verdicts, kubelets) in [
            ("rrrrrr", "v1.27 to v1.32, 6 kubelets"),
            ("rr....", "v1.27, v1.28, 2 kubelets"),
            ("r.rrr.", "v1.27, v1.29 to v1.31, 4 kubelets"),
            ("rr--rr", "v1.27 to v1.32, 4 kubelets"),
            ("....r.", "v1.31.14"),
        ] {
            let line = format!("reproduced: #9 on {kubelets} (message/a)");
            assert_eq!(rendered(&[("a", BUG, verdicts)]), [line], "{verdicts}");
        }
    }

    #[test]
    fn cases_of_a_bug_share_a_line_in_the_order_of_numbers() {
        let lines = rendered(&[
            ("b", "kubernetes/kubernetes#132001", "r....."),
            ("a", "kubernetes/kubernetes#132001", ".r...."),
            ("c", "kubernetes/kubernetes#9", "x....."),
            ("d", "kubernetes/kubernetes#10", "r....."),
            ("e", "other/project#1", "r....."),
        ]);
        assert_eq!(
            lines,
            [
                "reproduced: #10 on v1.27.16 (message/d)",
                "reproduced: #132001 on v1.27, v1.28, 2 kubelets (message/a, message/b)",
                "reproduced: other/project#1 on v1.27.16 (message/e)",
                "fixed: #9 does not occur on v1.27.16; narrow `known-bugs` of message/c",
            ]
        );
    }
}
