//! The result of a search, for programs.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::search::{KubeletSearch, KubeletSearchOutcome};

/// The result of a search, as `evictlab bisect --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BisectResult {
    /// `suite/case`.
    case: String,
    /// Outcome of the search.
    outcome: BisectOutcome,
    /// Kubelets of the outcome: the last one with the verdict of the older end and the first one
    /// with the other verdict, or the end that is not as given.
    kubelets: Vec<String>,
    /// Number of clusters that the search created.
    clusters: usize,
    /// Path of `bisect.md`, the report to paste into an issue.
    #[schemars(with = "String")]
    report: Box<Path>,
}

/// Outcomes of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum BisectOutcome {
    /// The verdict changes between two kubelets; those in between are inconclusive.
    Found,
    /// An end has another verdict than given.
    EndMismatch,
    /// An end is inconclusive.
    EndInconclusive,
}

impl BisectResult {
    /// Describes the outcome of a search for a case (`suite/case`), whose report is at a path.
    pub fn new(search: &KubeletSearch, outcome: &KubeletSearchOutcome, case: String, report: &Path) -> Self {
        let (outcome, indices) = match *outcome {
            KubeletSearchOutcome::Found { last_old, first_new } => {
                (BisectOutcome::Found, vec![last_old, first_new])
            }
            KubeletSearchOutcome::EndMismatch(end) => (BisectOutcome::EndMismatch, vec![end]),
            KubeletSearchOutcome::EndInconclusive(end) => (BisectOutcome::EndInconclusive, vec![end]),
        };
        let name = |index: usize| search.range.candidates[index].name.clone();
        let kubelets = indices.into_iter().map(name).collect();
        Self { case, outcome, kubelets, clusters: search.clusters, report: report.into() }
    }
}
