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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixtures::GOOD;
    use crate::{CaseFiles, Source};

    /// Listing does not check a case.
    #[test]
    fn a_case_with_extreme_amounts_is_listed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("suite")).unwrap();
        let more = "terminationGracePeriodSeconds: 18446744073709551615\n      volumes:\n";
        let extreme = GOOD.replace("volumes:\n", more).replace("expect:\n", "timeout: 7days\nexpect:\n");
        fs::write(root.path().join("suite/good.yaml"), extreme).unwrap();
        let cases = CaseFiles::read(&Source::Dir(root.path().to_owned())).parsed().unwrap();
        let listed = ListedCase::from(&*cases[0]);
        assert_eq!(listed.deadline_seconds, 7 * 24 * 3600);
    }
}
