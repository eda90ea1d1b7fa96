//! An entry in the list of cases.

use schemars::JsonSchema;
use serde::Serialize;

use crate::load::ParsedCase;

/// A case, as `evictlab list --json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedCase {
    /// The suite: the case's folder.
    pub suite: String,
    /// Name of the case.
    pub case: String,
    /// File of the case.
    pub file: String,
    /// One-sentence description.
    pub about: String,
    /// Conclusion to draw from a failure.
    pub when_it_fails: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// Kubelet versions that the case applies to, such as `>=1.29`.
    pub kubelet: String,
    /// Maximum duration of the observation, in seconds; longer on slow nodes.
    pub deadline_seconds: u64,
    /// Upstream issues, as links.
    pub upstream: Vec<String>,
}

impl From<&ParsedCase> for ListedCase {
    fn from(parsed: &ParsedCase) -> Self {
        let case = &parsed.case;
        Self {
            suite: parsed.suite.clone(),
            case: case.name.to_string(),
            file: parsed.file.clone(),
            about: case.about.clone(),
            when_it_fails: case.when_it_fails.clone(),
            labels: case.labels.clone(),
            kubelet: case.kubelet.to_string(),
            deadline_seconds: case.deadline().as_secs(),
            upstream: case.upstream.iter().map(|upstream| upstream.link()).collect(),
        }
    }
}
