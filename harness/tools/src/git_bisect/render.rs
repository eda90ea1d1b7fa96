//! The progress and the result of a search, as text and Markdown.

use std::fmt::Write;

use evictlab_report::BackendName;
use evictlab_report::text::{count_noun, markdown_code, markdown_table};

use super::culprit::Culprit;
use super::repository::{Commit, short};
use super::search::{CommitSearch, CommitSearchOutcome, remaining_tests};
use super::search_file::{CommitResult, TestedCommit};
use super::tries::{BadIf, Tries};
use crate::bisect::BisectTerm;

/// Note of a search whose kubelets were modelled.
const MODELLED: &str = "The kubelets were modelled by the versions that they report: a change of code that does not change the version has no effect. `--backend kind` runs the kubelets themselves.";

/// Returns the line that announces the test of a commit; `left`: the number of untested commits.
pub(super) fn progress(search: &CommitSearch, commit: &Commit, left: usize) -> String {
    let name = format!("{} {}", short(&commit.id), commit.subject);
    let term = match &commit.id {
        id if *id == search.old => search.old_term,
        id if *id == search.new => search.old_term.opposite(),
        _ => {
            let steps = count_noun(remaining_tests(left) as usize, "step");
            return format!("{} left, about {steps}: {name}", count_noun(left, "commit"));
        }
    };
    format!("given as {}: {name}", term.label())
}

/// Returns a table of the tested commits, the result in a sentence, and its confidence. `culprit`:
/// the commit that was found.
pub fn render(search: &CommitSearch, outcome: &CommitSearchOutcome, culprit: Option<&Culprit>) -> String {
    let rows = search.file.tested.iter().map(cells);
    let mut text = markdown_table(&["commit", "result", "kubelet", "subject"], rows);
    let _ = writeln!(text, "\n{}", sentence(search, outcome));
    if let Some(culprit) = culprit {
        let Culprit { commit, subject, author, date, pull_request } = culprit;
        let pull_request = pull_request.as_deref().unwrap_or("not named by a message");
        let _ = writeln!(
            text,
            "\n- commit: {commit}\n- subject: {}\n- author: {}, {date}\n- pull request: {pull_request}",
            markdown_code(subject),
            markdown_code(author)
        );
    }
    if matches!(outcome, CommitSearchOutcome::Found(_) | CommitSearchOutcome::OneOf(_)) {
        let _ = writeln!(text, "\n{}", confidence(search));
    }
    if search.file.options.backend == BackendName::Embedded {
        let _ = writeln!(text, "\n{MODELLED}");
    }
    let (tested, builds) = (search.file.tested.len(), search.file.builds as usize);
    let _ = writeln!(
        text,
        "\nThe search took {} and {}.",
        count_noun(tested, "commit"),
        count_noun(builds, "build")
    );
    text
}

fn cells(tested: &TestedCommit) -> [String; 4] {
    let result = match &tested.result {
        CommitResult::Conclusive { term, tries: Tries { good, bad } } => match good + bad {
            1 => term.label().to_owned(),
            all => format!("{}: {bad} of {all} tries bad", term.label()),
        },
        CommitResult::NotBuilt(reason) | CommitResult::Inconclusive(reason) => {
            format!("skipped: {reason}")
        }
    };
    let version = tested.version.as_deref().unwrap_or("not built");
    [short(&tested.commit).to_owned(), result, version.to_owned(), markdown_code(&tested.subject)]
}

fn sentence(search: &CommitSearch, outcome: &CommitSearchOutcome) -> String {
    let case = &search.file.options.case;
    let (old, new) = (short(&search.old), short(&search.new));
    let new_term = search.old_term.opposite().label();
    match outcome {
        CommitSearchOutcome::Found(commit) => {
            format!("**{}** is the first commit on which {case} is {new_term}.", short(commit))
        }
        CommitSearchOutcome::OneOf(commits) => {
            let names: Vec<&str> = commits.iter().map(|commit| short(commit)).collect();
            let names = names.join("**, **");
            format!(
                "The first commit on which {case} is {new_term} is one of **{names}**: all of them but the last were skipped."
            )
        }
        CommitSearchOutcome::EndMismatch(end) => {
            let given = if *end == search.old { search.old_term } else { search.old_term.opposite() };
            let (given, found) = (given.label(), given.opposite().label());
            format!(
                "{} was given as {given} and is {found}: no search is possible between {old} and {new}.",
                short(end)
            )
        }
        CommitSearchOutcome::EndSkipped(end) => {
            format!("{} was skipped: no search is possible between {old} and {new}.", short(end))
        }
        CommitSearchOutcome::NoEndBuilds => format!("Neither {old} nor {new} builds."),
    }
}

fn confidence(search: &CommitSearch) -> String {
    let estimate = search.confidence();
    let options = &search.file.options;
    let uncertain = match options.bad_if {
        BadIf::Any => BisectTerm::Bad,
        BadIf::All => BisectTerm::Good,
    };
    let (term, other) = (uncertain.label(), uncertain.opposite().label());
    let missed = (1.0 - estimate.confidence) * 100.0;
    format!(
        "Confidence: {:.1} %. {} of {} of {term} commits had a {term} verdict, so such a try is {term} with probability p = {:.2} (rule of succession). A {term} commit is mistaken for a {other} one with probability (1 - p)^{} = {missed:.1} %; more `--tries` make this less likely.",
        estimate.confidence * 100.0,
        estimate.agreeing,
        count_noun(estimate.tries as usize, "try"),
        estimate.rate,
        options.tries,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_bisect::repository::Repository;
    use crate::git_bisect::search_file::{SearchFile, SearchOptions};

    fn id(character: char) -> String {
        character.to_string().repeat(40)
    }

    fn tested(commit: char, version: Option<&str>, result: CommitResult) -> TestedCommit {
        TestedCommit {
            commit: id(commit),
            subject: format!("change {commit} | `x`"),
            version: version.map(str::to_owned),
            result,
        }
    }

    fn search() -> CommitSearch {
        let options = SearchOptions {
            case: "message/a".to_owned(),
            backend: BackendName::Embedded,
            repository: "/src/.git".into(),
            good: id('1'),
            bad: id('9'),
            build: "make".to_owned(),
            kubelet_path: "kubelet".into(),
            tries: 2,
            bad_if: BadIf::Any,
            first_parent: false,
        };
        let conclusive = |term, good, bad| CommitResult::Conclusive { term, tries: Tries { good, bad } };
        let mut file = SearchFile::new(options);
        file.builds = 5;
        file.tested = vec![
            tested('9', Some("v1.33.0"), conclusive(BisectTerm::Bad, 0, 2)),
            tested('1', Some("v1.32.0"), conclusive(BisectTerm::Good, 2, 0)),
            tested(
                '5',
                None,
                CommitResult::NotBuilt("the build ended with exit status: 2: a | b".to_owned()),
            ),
            tested('6', Some("v1.33.0"), conclusive(BisectTerm::Bad, 1, 1)),
            tested(
                '3',
                Some("v1.32.0"),
                CommitResult::Inconclusive("inconclusive 3 times, no event".to_owned()),
            ),
        ];
        let repository = Repository::at("/src/.git".as_ref());
        CommitSearch { repository, file, old: id('1'), new: id('9'), old_term: BisectTerm::Good }
    }

    #[test]
    fn renders_every_commit_and_the_result() {
        let search = search();
        let culprit = Culprit {
            commit: id('6'),
            subject: "change 6 <b>".to_owned(),
            author: "A. Author".to_owned(),
            date: "2026-11-25T07:00:00Z".to_owned(),
            pull_request: Some("#7".to_owned()),
        };
        let mut all = vec![render(&search, &CommitSearchOutcome::Found(id('6')), Some(&culprit))];
        let outcomes = [
            CommitSearchOutcome::OneOf(vec![id('5'), id('6')]),
            CommitSearchOutcome::EndMismatch(id('1')),
            CommitSearchOutcome::EndMismatch(id('9')),
            CommitSearchOutcome::EndSkipped(id('9')),
            CommitSearchOutcome::NoEndBuilds,
        ];
        all.extend(outcomes.map(|outcome| sentence(&search, &outcome)));
        let commit = |character| Commit {
            id: id(character),
            author: String::new(),
            date: String::new(),
            subject: "subject".to_owned(),
            message: String::new(),
        };
        all.extend(['1', '9', '4'].map(|character| progress(&search, &commit(character), 12)));
        insta::assert_snapshot!(all.join("\n---\n\n"));
    }
}
