//! The events of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::backend_name::BackendName;
use evictlab_evidence::Observations;
use evictlab_judge::{CaseResult, Phase, Verdict};
use evictlab_rules::CgroupVersion;

/// Key of the kind of an event through format 3; now `type`.
const TAG_OF_FORMAT_3: &str = "what";

/// One event of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunEvent {
    /// Time of the event.
    pub at: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

impl<'de> Deserialize<'de> for RunEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            at: Timestamp,
            #[serde(flatten)]
            kind: Map<String, Value>,
        }
        let Fields { at, mut kind } = Fields::deserialize(deserializer)?;
        if let Some(tag) = kind.remove(TAG_OF_FORMAT_3) {
            kind.entry("type").or_insert(tag);
        }
        let kind = RunEventKind::deserialize(Value::Object(kind)).map_err(D::Error::custom)?;
        Ok(Self { at, kind })
    }
}

/// Identity of one execution: case, kubelet and attempt.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, Hash, JsonSchema)]
pub struct CaseId {
    /// The suite: the case's folder.
    pub suite: String,
    /// The case.
    pub case: String,
    /// Label of the kubelet, such as `v1.32.13`.
    pub kubelet: String,
    /// Number of the attempt, from 1; `--repeat` counts.
    pub attempt: u32,
}

/// Cause of the failure of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterFailureCause {
    /// A kubelet binary cannot be read, or does not start.
    KubeletBinary,
}

/// The kinds of events.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum RunEventKind {
    /// The run started.
    RunStarted {
        /// Id of the run.
        #[serde(rename = "run")]
        run_id: String,
        /// Version of evictlab.
        evictlab: String,
        /// Backend of the run.
        backend: BackendName,
        /// The model; `None` on real kubelets.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<Model>,
        /// Labels of the kubelets.
        kubelets: Vec<String>,
        /// The `--kubelet` argument of each kubelet that one selects, by label.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        kubelet_args: BTreeMap<String, String>,
        /// Every case that will run or be skipped.
        cases: Vec<CaseInfo>,
        /// Number of runs of each case on each kubelet; 1 if missing, `null` if not known in
        /// advance.
        #[serde(default = "once", skip_serializing_if = "is_once")]
        repeat: Option<u32>,
        /// Effect of flaky cases on the exit status.
        #[serde(default, alias = "flaky_result", skip_serializing_if = "FlakyResult::is_default")]
        flaky_result: FlakyResult,
        /// Real time of the start, in whole seconds, of a run in simulated time.
        #[serde(default, alias = "real_start", skip_serializing_if = "Option::is_none")]
        real_start: Option<Timestamp>,
        /// The shard of the selection that the run is, with `--shard`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shard: Option<ShardInfo>,
    },
    /// Creation of a cluster started, or an existing one is being reused.
    ClusterStarted {
        /// Name of the cluster.
        cluster: String,
        /// Kubelets of its workers.
        kubelets: Vec<String>,
        /// True if the cluster existed before the run.
        reused: bool,
    },
    /// Progress of a cluster.
    ClusterStep {
        /// Name of the cluster.
        cluster: String,
        /// The current step, in one line.
        text: String,
    },
    /// A problem delays the nodes of a cluster. Waiting continues.
    ClusterWarning {
        /// Name of the cluster.
        cluster: String,
        /// The problem in one line, and an instruction in a second one, if it is well known.
        text: String,
    },
    /// A cluster is ready.
    ClusterReady {
        /// Name of the cluster.
        cluster: String,
        /// Duration of the creation, in seconds.
        seconds: f64,
        /// Workers: node name and kubelet version.
        nodes: Vec<(String, String)>,
    },
    /// A cluster could not be created.
    ClusterFailed {
        /// Name of the cluster.
        cluster: String,
        /// Time until the failure, in seconds.
        seconds: f64,
        /// The error, with advice.
        error: String,
        /// The cause, if it is a known one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<ClusterFailureCause>,
    },
    /// A cluster was deleted, was kept, or could not be deleted.
    ClusterDeleted {
        /// Name of the cluster.
        cluster: String,
        /// Duration of the deletion, in seconds.
        seconds: f64,
        /// Reason for keeping the cluster, if it was kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
        /// The error, if the cluster could not be deleted.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A case started on a node.
    CaseStarted {
        /// The case.
        #[serde(flatten)]
        id: CaseId,
        /// Name of the node.
        node: String,
    },
    /// A case reached a step.
    CaseStep {
        /// The case.
        #[serde(flatten)]
        id: CaseId,
        /// Its phase.
        phase: Phase,
        /// The current step, or an observation, in one line.
        text: String,
    },
    /// A measurement of a running case changed. It replaces the previous one: live reports show
    /// the latest, logs a sample, `events.jsonl` all.
    CaseProgress {
        /// The case.
        #[serde(flatten)]
        id: CaseId,
        /// Its phase.
        phase: Phase,
        /// The measurement in one line, such as `el-sidecar1 at 212Mi, 44Mi to go`.
        text: String,
    },
    /// A try of a case was inconclusive; the case runs again on the same node.
    CaseRetried {
        /// The case.
        #[serde(flatten)]
        id: CaseId,
        /// Number of the try that ended, from 1.
        #[serde(alias = "try_number")]
        try_number: u32,
        /// The difference between this try and the next one, such as `retrying more slowly`.
        text: String,
        /// The verdict and the reasons for it.
        #[serde(alias = "judgement")]
        result: Arc<CaseResult>,
        /// The evidence. Not serialized: its files are written beside the reports.
        #[serde(skip)]
        evidence: Option<Arc<Observations>>,
    },
    /// A case ended.
    CaseEnded {
        /// The case.
        #[serde(flatten)]
        id: CaseId,
        /// Name of the node, if the case got one.
        node: Option<String>,
        /// Time from the start on the node until the node has recovered, in seconds.
        seconds: f64,
        /// The verdict and the reasons for it.
        #[serde(alias = "judgement")]
        result: Arc<CaseResult>,
        /// The evidence. Not serialized: its files are written beside the reports.
        #[serde(skip)]
        evidence: Option<Arc<Observations>>,
    },
    /// The run was interrupted while a case ran: the case has no verdict.
    CaseInterrupted {
        /// The case.
        #[serde(flatten)]
        id: CaseId,
        /// Name of the node.
        node: String,
        /// Duration until the interrupt, in seconds.
        seconds: f64,
    },
    /// The run was interrupted.
    Interrupted {
        /// 1: stop, clean up, and report; 2: report only.
        stage: u8,
    },
    /// A file of the results could not be written, as on a full disk. The run continues; reported
    /// for the first such file.
    ReportFailed {
        /// The error, and an instruction in a second line.
        error: String,
    },
    /// The run reached its time limit (`--timeout`): running cases end, others are skipped.
    TimedOut,
    /// The run ended.
    RunEnded {
        /// Exit status of the command.
        #[serde(alias = "exit_code")]
        exit_code: u8,
        /// Duration of the run, in seconds.
        seconds: f64,
    },
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn once() -> Option<u32> {
    Some(1)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(repeat: &Option<u32>) -> bool {
    *repeat == once()
}

/// Effect of a flaky case on the exit status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlakyResult {
    /// As of a passed case.
    #[default]
    Pass,
    /// As of a failed case.
    Fail,
}

impl FlakyResult {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The model of a run without real kubelets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Modelled cgroup version.
    pub cgroup: CgroupVersion,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Command-line options that select this model; empty for the defaults.
    pub options: String,
    /// Command that runs the same cases on real kubelets.
    #[serde(alias = "on-real-kubelets")]
    pub on_real_kubelets: String,
}

/// One of the shards of a selection.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardInfo {
    /// Number of the shard, from 1.
    pub part: usize,
    /// Number of shards.
    pub of: usize,
    /// Cases of the other shards.
    #[serde(alias = "others")]
    pub other_cases: Vec<CaseInfo>,
}

/// A case of the plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseInfo {
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// One-sentence description.
    pub about: String,
    /// Conclusion to draw from a failure.
    #[serde(alias = "when_it_fails")]
    pub when_it_fails: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// Upstream issues, as links.
    pub upstream: Vec<String>,
    /// File of the case, relative to the folder of suites.
    pub file: String,
    /// Path by which the case was selected, if no name selects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Expected verdicts of the baseline, by kubelet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub baseline: BTreeMap<String, Verdict>,
}

impl CaseInfo {
    /// Path of the file for CI systems: as it was selected, or in a repository with the folder
    /// `cases`.
    pub(crate) fn repository_path(&self) -> String {
        self.path.clone().unwrap_or_else(|| format!("cases/{}", self.file))
    }
}
