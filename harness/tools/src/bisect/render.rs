//! The result of a search as Markdown.

use std::fmt::Write;

use evictlab_report::text::{count_noun, markdown_table};

use super::search::{CandidateState, KubeletSearch, KubeletSearchOutcome, ProbeOutcome};
use super::search_range::SearchRange;

/// Returns a table of all kubelets with their verdicts, and the result in a sentence. `case` is the
/// name of the case, such as `message/sidecars-are-named`.
pub fn render(search: &KubeletSearch, outcome: &KubeletSearchOutcome, case: &str) -> String {
    let rows = search.range.candidates.iter().enumerate().map(|(index, candidate)| {
        let (verdict, cluster) = candidate_cells(search, index);
        let version = candidate.version.to_string();
        let name =
            if candidate.name == version { version } else { format!("{} ({version})", candidate.name) };
        [name, verdict, cluster]
    });
    let mut text = markdown_table(&["kubelet", "verdict", "seen"], rows);
    let clusters = count_noun(search.clusters, "cluster");
    let _ = writeln!(text, "\n{}\n\nThe search took {clusters}.", sentence(search, outcome, case));
    text
}

/// Returns the verdict of a candidate and the cluster where it was tested.
fn candidate_cells(search: &KubeletSearch, index: usize) -> (String, String) {
    let range = &search.range;
    match &search.states[index] {
        CandidateState::Untested => {
            let verdict = match index {
                0 => format!("given as {}", range.old_term.label()),
                index if index + 1 == range.candidates.len() => {
                    format!("given as {}", range.new_term().label())
                }
                _ => "not needed".to_owned(),
            };
            (verdict, "not tested".to_owned())
        }
        CandidateState::Tested { outcome: ProbeOutcome::Conclusive(term, verdict), cluster } => {
            (format!("{}: {verdict}", term.label()), format!("cluster {cluster}"))
        }
        CandidateState::Tested { outcome: ProbeOutcome::Inconclusive(reason), cluster } => {
            (format!("skipped: {reason}"), format!("cluster {cluster}"))
        }
        CandidateState::Tested { outcome: ProbeOutcome::Unavailable(reason), .. } => {
            (format!("skipped: {reason}"), "not available".to_owned())
        }
    }
}

fn sentence(search: &KubeletSearch, outcome: &KubeletSearchOutcome, case: &str) -> String {
    let range = &search.range;
    let name = |index: usize| range.candidates[index].name.as_str();
    let end = range.candidates.len() - 1;
    let (old, new) = (range.old_term.label(), range.new_term().label());
    match outcome {
        KubeletSearchOutcome::Found { last_old, first_new }
            if last_old + 1 == *first_new && skips_minors(range, *last_old) =>
        {
            format!(
                "{case} is {old} on **{}** and {new} on **{}**. The versions between them were not searched: list them with --kubelet.",
                name(*last_old),
                name(*first_new)
            )
        }
        KubeletSearchOutcome::Found { last_old, first_new } if last_old + 1 == *first_new => format!(
            "**{}** is the first kubelet on which {case} is {new}; it is {old} on {}.",
            name(*first_new),
            name(*last_old)
        ),
        KubeletSearchOutcome::Found { last_old, first_new } => {
            let between: Vec<&str> = (last_old + 1..=*first_new).map(name).collect();
            format!(
                "The first kubelet on which {case} is {new} is one of **{}**: all of them but the last are inconclusive. It is {old} on {}.",
                between.join("**, **"),
                name(*last_old)
            )
        }
        KubeletSearchOutcome::EndMismatch(index) => {
            let (given, observed) = if *index == 0 { (old, new) } else { (new, old) };
            format!(
                "{} was given as {given} and is {observed}: no search is possible between {} and {}.",
                name(*index),
                name(0),
                name(end)
            )
        }
        KubeletSearchOutcome::EndInconclusive(index) => format!(
            "{} is inconclusive: no search is possible between {} and {}.",
            name(*index),
            name(0),
            name(end)
        ),
    }
}

/// Returns whether minor versions between a candidate and the next one are not candidates.
fn skips_minors(range: &SearchRange, index: usize) -> bool {
    let minor = |index: usize| range.candidates[index].version.minor;
    minor(index + 1) > minor(index) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::candidate::BisectTerm;
    use crate::bisect::search::tests::{binary, release};
    use crate::bisect::search_range::SearchRange;

    #[test]
    fn renders_every_kubelet_and_the_result() {
        let between = ["v1.31.14", "v1.32.13", "v1.33.1", "v1.36.2"].map(release).to_vec();
        let range =
            SearchRange::between(binary("./kubelet", "v1.37.0"), release("v1.31.14"), between).unwrap();
        let mut search = KubeletSearch::new(range);
        let answered = |outcome| CandidateState::Tested { outcome, cluster: 1 };
        search.states[0] = answered(ProbeOutcome::Conclusive(BisectTerm::Bad, "reproduced".to_owned()));
        search.states[1] =
            answered(ProbeOutcome::Inconclusive("inconclusive 3 times: killed | for memory\n".to_owned()));
        search.states[2] = answered(ProbeOutcome::Conclusive(BisectTerm::Good, "passed".to_owned()));
        search.clusters = 1;
        let outcomes = [
            KubeletSearchOutcome::Found { last_old: 0, first_new: 2 },
            KubeletSearchOutcome::Found { last_old: 2, first_new: 3 },
            KubeletSearchOutcome::Found { last_old: 0, first_new: 1 },
            KubeletSearchOutcome::EndMismatch(0),
            KubeletSearchOutcome::EndInconclusive(4),
        ];
        let all = outcomes.map(|outcome| render(&search, &outcome, "message/sidecars-are-named"));
        insta::assert_snapshot!(all.join("\n---\n\n"));
    }
}
