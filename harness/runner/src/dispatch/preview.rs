//! Preview of a run: its cases in their order, without a cluster.

use evictlab_cluster::{Backend, Kubelet};
use evictlab_report::BackendName;
use schemars::JsonSchema;
use serde::Serialize;

use crate::dispatch::plan_cases::{exclusivity_on, unsuitable_kubelet};
use crate::dispatch::request::RunRequest;
use crate::node_access::exclusivity::Exclusivity;

/// A case that a run would execute on a kubelet, or skip.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCase {
    /// Name of the cluster.
    pub cluster: String,
    /// Label of the kubelet.
    pub kubelet: String,
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// Nodes of the kubelet, of which the first one that is free takes the case; empty if they do
    /// not have names before the cluster exists.
    pub nodes: Vec<String>,
    /// Resource that the case needs for itself.
    pub exclusivity: Exclusivity,
    /// Maximum duration of the observation, in seconds; longer on slow nodes.
    pub deadline_seconds: u64,
    /// Reason why the case is skipped.
    pub skipped: Option<String>,
}

/// The preview of a run, as `--dry-run --json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPreview {
    /// Backend of the run.
    pub backend: BackendName,
    /// The cases in the order in which nodes take them, and those that the run would skip.
    pub cases: Vec<PreviewedCase>,
    /// Number of runs of each case; `null` if it depends on verdicts or on time.
    pub repeat: Option<u32>,
    /// Number of earlier runs in `results` on the backend, on which the estimate is based.
    pub earlier_runs: usize,
    /// Estimated real time of all cases, in seconds; `null` if too few of them have run before.
    pub estimated_seconds: Option<f64>,
}

/// A case of a preview, with its earlier duration.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedCase {
    /// The case.
    #[serde(flatten)]
    pub planned: PlannedCase,
    /// Duration in the newest earlier run, in seconds; simulated time on a model.
    pub earlier_seconds: Option<f64>,
}

/// Returns the cases of a run in the order in which nodes take them, and those that the run would
/// skip. Reasons that depend on the state of a node, such as its thresholds, are not known before
/// the run. Creates no resources.
pub fn preview(request: &RunRequest) -> Vec<PlannedCase> {
    let mut all = Vec::new();
    for plan in request.backend.plans() {
        let kubelets = plan.kubelets.iter();
        let mut cases: Vec<_> =
            kubelets.flat_map(|kubelet| of_kubelet(request, &plan.name, kubelet)).collect();
        // The order of `RunContext::run_attempts`.
        cases.sort_by_key(|case| case.exclusivity);
        all.extend(cases);
    }
    all
}

fn of_kubelet(request: &RunRequest, cluster: &str, kubelet: &Kubelet) -> Vec<PlannedCase> {
    let backend: &Backend = &request.backend;
    let nodes = backend.node_names(&kubelet.label);
    let case = |case: &std::sync::Arc<evictlab_case::LoadedCase>| PlannedCase {
        cluster: cluster.to_owned(),
        kubelet: kubelet.label.clone(),
        suite: case.suite.clone(),
        case: case.case.name.to_string(),
        nodes: nodes.clone(),
        // New kind nodes get file systems of their own where they can.
        exclusivity: exclusivity_on(backend, &case.case, true),
        deadline_seconds: case.case.deadline().as_secs(),
        skipped: unsuitable_kubelet(backend, case, kubelet).map(|why| why.to_string()),
    };
    request.cases.iter().map(case).collect()
}
