//! The one stream of events that every report is made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::judge::{Judgement, Phase, Verdict};
use crate::observe::Observations;

/// One thing that happened in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// Which case, on which kubelet, which time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, Hash)]
pub struct CaseId {
    /// The suite: the case's folder.
    pub suite: String,
    /// The case.
    pub case: String,
    /// The kubelet as asked for and labelled, such as `v1.32.13`.
    pub kubelet: String,
    /// 1 for the first run of it, counting `--repeat`.
    pub attempt: u32,
}

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// The run began.
    RunStarted {
        /// The run's id.
        run: String,
        /// evictlab's version.
        evictlab: String,
        /// `kind`, `existing` or `embedded`.
        backend: String,
        /// What it modelled; none where the kubelets were real.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<Model>,
        /// The kubelets, as labelled.
        kubelets: Vec<String>,
        /// Every case that will run or be skipped, with what reports show of it.
        cases: Vec<Planned>,
    },
    /// A cluster is being made, or a kept one taken.
    ClusterStarted {
        /// Its name.
        cluster: String,
        /// The kubelets of its workers.
        kubelets: Vec<String>,
        /// Whether it was there before.
        reused: bool,
    },
    /// One line about a cluster's progress.
    ClusterStep {
        /// Its name.
        cluster: String,
        /// What is being done.
        text: String,
    },
    /// A cluster is ready.
    ClusterReady {
        /// Its name.
        cluster: String,
        /// How long it took.
        seconds: f64,
        /// Its workers: node name and kubelet version.
        nodes: Vec<(String, String)>,
    },
    /// A cluster could not be made.
    ClusterFailed {
        /// Its name.
        cluster: String,
        /// How long it took.
        seconds: f64,
        /// Why, and what to do.
        error: String,
    },
    /// A cluster was deleted, or left on purpose.
    ClusterDeleted {
        /// Its name.
        cluster: String,
        /// How long it took.
        seconds: f64,
        /// Why it was kept, if it was, or why it could not be deleted.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
        /// Why it could not be deleted.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A case began on a node.
    CaseStarted {
        /// Which.
        #[serde(flatten)]
        id: CaseId,
        /// The node.
        node: String,
    },
    /// A case came to a step.
    CaseStep {
        /// Which.
        #[serde(flatten)]
        id: CaseId,
        /// The phase it is in.
        phase: Phase,
        /// What is being done, or was seen, in one line.
        text: String,
    },
    /// A figure of a running case moved: it replaces the one before. Live reports show the newest, logs a few of
    /// them, the event file all.
    CaseProgress {
        /// Which.
        #[serde(flatten)]
        id: CaseId,
        /// The phase it is in.
        phase: Phase,
        /// The figure, in one line, such as `el-sidecar1 at 212Mi, 44Mi to go`.
        text: String,
    },
    /// A case ended.
    CaseEnded {
        /// Which.
        #[serde(flatten)]
        id: CaseId,
        /// The node, if it got one.
        node: Option<String>,
        /// How long it took, from lease to reset, in seconds.
        seconds: f64,
        /// The verdict and its grounds.
        judgement: Arc<Judgement>,
        /// The evidence; its files are written beside the reports.
        #[serde(skip)]
        evidence: Option<Arc<Observations>>,
    },
    /// The run was interrupted.
    Interrupted {
        /// 1: stopping and cleaning up; 2: reports only.
        stage: u8,
    },
    /// The run is over.
    RunEnded {
        /// The exit status that the command will give.
        exit_code: u8,
        /// How long it took, in seconds.
        seconds: f64,
    },
}

/// What a run on no real kubelets was.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Model {
    /// The version of the kernel's control groups, such as `v2`.
    pub cgroup: String,
    /// Where all chance came from.
    pub seed: u64,
    /// What makes the same model again, as options of a command line; empty where the defaults do.
    pub options: String,
    /// The command that runs the same on real kubelets.
    pub on_real_kubelets: String,
}

/// A case in the plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planned {
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// Its sentence.
    pub about: String,
    /// What to conclude when it fails.
    pub when_it_fails: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its upstream issues, as links.
    pub upstream: Vec<String>,
    /// Its file, relative to where the suites lie.
    pub file: String,
    /// The path by which it was selected, if it has no name that selects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The verdicts of the baseline that the run is held against, by kubelet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub baseline: BTreeMap<String, Verdict>,
}
