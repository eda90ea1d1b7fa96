//! What a run has come to so far: the stream folded, for the reports that show a whole.

use std::sync::Arc;

use jiff::Timestamp;

use super::{CaseId, Model, Planned, RunEvent, What};
use crate::judge::{Judgement, Phase, Verdict};

/// Everything that happened, without the evidence.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The run; none before its first event.
    pub run: Option<Run>,
    /// The clusters, first made first.
    pub clusters: Vec<Cluster>,
    /// The cases that are on a node now.
    pub running: Vec<Running>,
    /// The cases that ended, first ended first.
    pub ended: Vec<Ended>,
    /// The stage of the interrupt, 0 for none.
    pub interrupted: u8,
    /// When it was over, if it is.
    pub over: Option<Over>,
}

/// How the run began.
#[derive(Debug)]
pub(super) struct Run {
    pub at: Timestamp,
    pub id: String,
    pub evictlab: String,
    pub backend: String,
    pub model: Option<Model>,
    pub kubelets: Vec<String>,
    pub cases: Vec<Planned>,
}

/// A cluster's life.
#[derive(Debug)]
pub(super) struct Cluster {
    pub name: String,
    pub kubelets: Vec<String>,
    pub reused: bool,
    pub creation: Option<Creation>,
    pub deletion: Option<Deletion>,
}

/// How a cluster's creation ended.
#[derive(Debug)]
pub(super) enum Creation {
    Ready { at: Timestamp, seconds: f64 },
    Failed { seconds: f64, error: String },
}

/// How a cluster ended.
#[derive(Debug)]
pub(super) struct Deletion {
    pub at: Timestamp,
    pub seconds: f64,
    pub kept: Option<String>,
    pub error: Option<String>,
}

/// A case on its node.
#[derive(Debug)]
pub(super) struct Running {
    pub id: CaseId,
    pub since: Timestamp,
    pub phase: Phase,
    pub text: String,
}

/// A case that ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub id: CaseId,
    pub node: Option<String>,
    pub seconds: f64,
    pub judgement: Arc<Judgement>,
}

/// The end.
#[derive(Debug)]
pub(super) struct Over {
    pub at: Timestamp,
    pub exit_code: u8,
    pub seconds: f64,
}

impl Ledger {
    /// Adds one event.
    pub fn take(&mut self, event: &RunEvent) {
        let at = event.at;
        match &event.what {
            What::RunStarted { run, evictlab, backend, model, kubelets, cases } => {
                self.run = Some(Run {
                    at,
                    id: run.clone(),
                    evictlab: evictlab.clone(),
                    backend: backend.clone(),
                    model: model.clone(),
                    kubelets: kubelets.clone(),
                    cases: cases.clone(),
                });
            }
            What::ClusterStarted { cluster, kubelets, reused } => self.clusters.push(Cluster {
                name: cluster.clone(),
                kubelets: kubelets.clone(),
                reused: *reused,
                creation: None,
                deletion: None,
            }),
            What::ClusterStep { .. } => {}
            What::ClusterReady { cluster, seconds, .. } => {
                if let Some(cluster) = self.cluster(cluster) {
                    cluster.creation = Some(Creation::Ready { at, seconds: *seconds });
                }
            }
            What::ClusterFailed { cluster, seconds, error } => {
                if let Some(cluster) = self.cluster(cluster) {
                    cluster.creation = Some(Creation::Failed { seconds: *seconds, error: error.clone() });
                }
            }
            What::ClusterDeleted { cluster, seconds, kept, error } => {
                if let Some(cluster) = self.cluster(cluster) {
                    let (kept, error) = (kept.clone(), error.clone());
                    cluster.deletion = Some(Deletion { at, seconds: *seconds, kept, error });
                }
            }
            What::CaseStarted { id, .. } => self.running.push(Running {
                id: id.clone(),
                since: at,
                phase: Phase::Lease,
                text: String::new(),
            }),
            What::CaseStep { id, phase, text } | What::CaseProgress { id, phase, text } => {
                if let Some(running) = self.running.iter_mut().find(|running| running.id == *id) {
                    running.phase = *phase;
                    running.text.clone_from(text);
                }
            }
            What::CaseEnded { id, node, seconds, judgement, evidence: _ } => {
                self.running.retain(|running| running.id != *id);
                self.ended.push(Ended {
                    id: id.clone(),
                    node: node.clone(),
                    seconds: *seconds,
                    judgement: judgement.clone(),
                });
            }
            What::Interrupted { stage } => self.interrupted = *stage,
            What::RunEnded { exit_code, seconds } => {
                self.over = Some(Over { at, exit_code: *exit_code, seconds: *seconds });
            }
        }
    }

    fn cluster(&mut self, name: &str) -> Option<&mut Cluster> {
        self.clusters.iter_mut().rfind(|cluster| cluster.name == name)
    }

    /// The ended attempts of one case on one kubelet.
    pub fn attempts<'a>(&'a self, planned: &'a Planned, kubelet: &'a str) -> impl Iterator<Item = &'a Ended> {
        self.ended.iter().filter(move |ended| planned.is(&ended.id, kubelet))
    }

    /// The planned cases with the kubelets on which they have no verdict, in the plan's order.
    pub fn without_verdict(&self) -> impl Iterator<Item = (&Planned, &str)> {
        let run = self.run.as_ref();
        let cases = run.map(|run| &run.cases[..]).unwrap_or_default();
        let kubelets = run.map(|run| &run.kubelets[..]).unwrap_or_default();
        cases
            .iter()
            .flat_map(|case| kubelets.iter().map(move |kubelet| (case, kubelet.as_str())))
            .filter(|(case, kubelet)| self.attempts(case, kubelet).next().is_none())
    }

    /// What the plan says of a case.
    pub fn planned(&self, id: &CaseId) -> Option<&Planned> {
        self.run.as_ref()?.cases.iter().find(|planned| planned.is(id, &id.kubelet))
    }

    /// Every verdict that was seen, in the order of the totals, with its count.
    pub fn counts(&self) -> Vec<(Verdict, usize)> {
        const ORDER: [Verdict; 7] = [
            Verdict::Passed,
            Verdict::Reproduced,
            Verdict::Fixed,
            Verdict::Failed,
            Verdict::Error,
            Verdict::Inconclusive,
            Verdict::Skipped,
        ];
        let count = |verdict| self.ended.iter().filter(|ended| ended.judgement.verdict == verdict).count();
        ORDER.into_iter().map(|verdict| (verdict, count(verdict))).filter(|(_, count)| *count > 0).collect()
    }

    /// Whether something other than a case went wrong: a cluster, or a planned case that never came to a verdict.
    pub fn infrastructure_failed(&self) -> bool {
        let cluster_failed = |cluster: &Cluster| {
            matches!(cluster.creation, Some(Creation::Failed { .. }))
                || cluster.deletion.as_ref().is_some_and(|deletion| deletion.error.is_some())
        };
        self.clusters.iter().any(cluster_failed) || self.without_verdict().next().is_some()
    }
}

impl Planned {
    /// Whether it is the case of `id`, on `kubelet`.
    pub(super) fn is(&self, id: &CaseId, kubelet: &str) -> bool {
        self.suite == id.suite && self.case == id.case && kubelet == id.kubelet
    }
}

impl CaseId {
    /// The case's name, with the attempt from the second one on: `sidecars-are-named #2`.
    pub(super) fn title(&self) -> String {
        match self.attempt {
            0 | 1 => self.case.clone(),
            attempt => format!("{} #{attempt}", self.case),
        }
    }
}
