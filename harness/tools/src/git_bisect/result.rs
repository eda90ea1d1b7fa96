//! The result of a search, for programs.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::culprit::Culprit;
use super::search::{CommitSearch, CommitSearchOutcome};
use super::search_file::TestedCommit;
use super::tries::Confidence;

/// The result of a search, as `evictlab bisect --git --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommitBisectResult {
    /// `suite/case`.
    case: String,
    /// Outcome of the search.
    outcome: CommitOutcome,
    /// Commits of the outcome, full ids: the first one with the verdict of the newer end, those
    /// among which it is, or the end that is not as given.
    commits: Vec<String>,
    /// The commit that was found; null without one.
    culprit: Option<Culprit>,
    /// Confidence in the commit that was found; null without one.
    confidence: Option<Confidence>,
    /// Tested commits, in order.
    tested: Vec<TestedCommit>,
    /// Number of builds.
    builds: u32,
    /// Path of `bisect.md`, the report to paste into an issue.
    #[schemars(with = "String")]
    report: Box<Path>,
}

/// Outcomes of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum CommitOutcome {
    /// The first commit with the verdict of the newer end was found.
    Found,
    /// It is one of several commits; all but the last were skipped.
    OneOf,
    /// An end has another verdict than given.
    EndMismatch,
    /// An end was skipped.
    EndInconclusive,
}

impl CommitBisectResult {
    /// Describes the outcome of a search whose report is at a path; `None` if neither end builds.
    pub fn new(
        search: &CommitSearch,
        outcome: &CommitSearchOutcome,
        culprit: Option<Culprit>,
        report: &Path,
    ) -> Option<Self> {
        let (outcome, commits) = match outcome {
            CommitSearchOutcome::Found(commit) => (CommitOutcome::Found, vec![commit.clone()]),
            CommitSearchOutcome::OneOf(commits) => (CommitOutcome::OneOf, commits.clone()),
            CommitSearchOutcome::EndMismatch(end) => (CommitOutcome::EndMismatch, vec![end.clone()]),
            CommitSearchOutcome::EndSkipped(end) => (CommitOutcome::EndInconclusive, vec![end.clone()]),
            CommitSearchOutcome::NoEndBuilds => return None,
        };
        Some(Self {
            case: search.file.options.case.clone(),
            outcome,
            commits,
            confidence: culprit.as_ref().map(|_| search.confidence()),
            culprit,
            tested: search.file.tested.clone(),
            builds: search.file.builds,
            report: report.into(),
        })
    }
}
