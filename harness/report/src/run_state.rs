//! The state of a run after the events so far. Every report reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use evictlab_rules::KubeletVersion;
use jiff::Timestamp;

use crate::backend_name::BackendName;
use crate::baseline;
use crate::run_event::{CaseId, CaseInfo, FlakyResult, Model, RunEvent, RunEventKind, ShardInfo};
use evictlab_judge::{CaseResult, Phase, Verdict};

/// The state of a run, folded from its events by [`RunState::apply`]. Holds no evidence.
#[derive(Debug, Default)]
pub struct RunState {
    /// The first event; `None` before it.
    pub(crate) run: Option<RunStart>,
    /// Clusters in the order of their creation.
    pub(crate) clusters: Vec<Cluster>,
    /// Cases that occupy a node now.
    pub(crate) running: Vec<RunningCase>,
    /// Cases that ended, in the order of their ends.
    pub(crate) ended: Vec<EndedCase>,
    /// Number of interrupts so far: 1 stops the run, 2 skips the cleanup.
    pub(crate) interrupted: u8,
    /// True if the run reached its time limit.
    pub(crate) timed_out: bool,
    /// The last event; `None` before it.
    pub(crate) end: Option<RunEnd>,
}

/// The start of a run.
#[derive(Debug)]
pub(crate) struct RunStart {
    pub at: Timestamp,
    pub id: String,
    pub evictlab: String,
    pub backend: BackendName,
    pub model: Option<Model>,
    pub kubelets: Vec<String>,
    /// `--kubelet` arguments that select the kubelets again, by label.
    pub kubelet_args: BTreeMap<String, String>,
    pub cases: Vec<CaseInfo>,
    /// Number of runs of each case on each kubelet; `None` if it is not known in advance.
    pub repeat: Option<u32>,
    pub flaky_result: FlakyResult,
    pub shard: Option<ShardInfo>,
    /// Real time of the start; `at` of a model is simulated.
    pub real_start: Timestamp,
}

/// A cluster of the run.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub name: String,
    pub kubelets: Vec<String>,
    pub reused: bool,
    /// The last step.
    pub step: String,
    pub creation: Option<Creation>,
    pub deletion: Option<Deletion>,
}

/// The result of creating a cluster.
#[derive(Debug)]
pub(crate) enum Creation {
    Ready { at: Timestamp, seconds: f64 },
    Failed { seconds: f64, error: String },
}

/// The result of deleting a cluster.
#[derive(Debug)]
pub(crate) struct Deletion {
    pub at: Timestamp,
    pub seconds: f64,
    pub kept: Option<String>,
    pub error: Option<String>,
}

/// A case that occupies a node.
#[derive(Debug)]
pub(crate) struct RunningCase {
    pub id: CaseId,
    pub since: Timestamp,
    pub phase: Phase,
    pub text: String,
}

/// A case that ended.
#[derive(Debug)]
pub(crate) struct EndedCase {
    pub id: CaseId,
    pub node: Option<String>,
    pub seconds: f64,
    pub result: Arc<CaseResult>,
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct RunEnd {
    pub at: Timestamp,
    pub exit_code: u8,
    pub seconds: f64,
}

impl RunState {
    /// Applies one event.
    pub fn apply(&mut self, event: &RunEvent) {
        let at = event.at;
        match &event.kind {
            RunEventKind::RunStarted { .. } => self.run = RunStart::from_event(event),
            RunEventKind::ClusterStarted { .. }
            | RunEventKind::ClusterStep { .. }
            | RunEventKind::ClusterWarning { .. }
            | RunEventKind::ClusterReady { .. }
            | RunEventKind::ClusterFailed { .. }
            | RunEventKind::ClusterDeleted { .. } => self.apply_cluster_event(at, &event.kind),
            RunEventKind::CaseStarted { id, .. } => self.running.push(RunningCase {
                id: id.clone(),
                since: at,
                phase: Phase::AwaitNode,
                text: String::new(),
            }),
            RunEventKind::CaseStep { id, phase, text } | RunEventKind::CaseProgress { id, phase, text } => {
                if let Some(running) = self.running.iter_mut().find(|running| running.id == *id) {
                    running.phase = *phase;
                    running.text.clone_from(text);
                }
            }
            RunEventKind::CaseRetried { id, text, result, .. } => {
                if let Some(running) = self.running.iter_mut().find(|running| running.id == *id) {
                    running.phase = Phase::AwaitNode;
                    running.text = retry_text(text, result);
                }
            }
            RunEventKind::CaseEnded { id, node, seconds, result, evidence: _ } => {
                self.running.retain(|running| running.id != *id);
                self.ended.push(EndedCase {
                    id: id.clone(),
                    node: node.clone(),
                    seconds: *seconds,
                    result: result.clone(),
                });
            }
            RunEventKind::CaseInterrupted { id, .. } => self.running.retain(|running| running.id != *id),
            RunEventKind::Interrupted { stage } => self.interrupted = *stage,
            RunEventKind::TimedOut => self.timed_out = true,
            RunEventKind::ReportFailed { .. } => {}
            RunEventKind::RunEnded { exit_code, seconds } => {
                self.end = Some(RunEnd { at, exit_code: *exit_code, seconds: *seconds });
            }
        }
    }

    /// The name of a kubelet that is the same in every run: its minor version, `v1.32`. Its label,
    /// such as `v1.32.13=./kubelet`, if that is not a version, or if another kubelet of this run
    /// has the same minor.
    pub(crate) fn row_name(&self, kubelet: &str) -> String {
        let minor = |label: &str| label.parse().ok().map(|version| baseline::minor(&version));
        let kubelets = || self.run.iter().flat_map(|run| &run.kubelets);
        let is_unique =
            |name: &String| kubelets().filter(|other| minor(other).as_ref() == Some(name)).count() < 2;
        minor(kubelet).filter(is_unique).unwrap_or_else(|| kubelet.to_owned())
    }

    fn apply_cluster_event(&mut self, at: Timestamp, kind: &RunEventKind) {
        match kind {
            RunEventKind::ClusterStarted { cluster, kubelets, reused } => self.clusters.push(Cluster {
                name: cluster.clone(),
                kubelets: kubelets.clone(),
                reused: *reused,
                step: String::new(),
                creation: None,
                deletion: None,
            }),
            RunEventKind::ClusterStep { cluster, text } => {
                if let Some(cluster) = self.cluster_mut(cluster) {
                    cluster.step.clone_from(text);
                }
            }
            RunEventKind::ClusterReady { cluster, seconds, .. } => {
                if let Some(cluster) = self.cluster_mut(cluster) {
                    cluster.creation = Some(Creation::Ready { at, seconds: *seconds });
                }
            }
            RunEventKind::ClusterFailed { cluster, seconds, error, .. } => {
                if let Some(cluster) = self.cluster_mut(cluster) {
                    cluster.creation = Some(Creation::Failed { seconds: *seconds, error: error.clone() });
                }
            }
            RunEventKind::ClusterDeleted { cluster, seconds, kept, error } => {
                if let Some(cluster) = self.cluster_mut(cluster) {
                    let (kept, error) = (kept.clone(), error.clone());
                    cluster.deletion = Some(Deletion { at, seconds: *seconds, kept, error });
                }
            }
            _ => {}
        }
    }

    fn cluster_mut(&mut self, name: &str) -> Option<&mut Cluster> {
        self.clusters.iter_mut().rfind(|cluster| cluster.name == name)
    }

    /// Ended attempts of one case on one kubelet.
    pub(crate) fn attempts<'a>(
        &'a self,
        info: &'a CaseInfo,
        kubelet: &'a str,
    ) -> impl Iterator<Item = &'a EndedCase> {
        self.ended.iter().filter(move |ended| info.matches(&ended.id, kubelet))
    }

    /// Planned cases and kubelets without a verdict, in the order of the plan.
    pub(crate) fn without_verdict(&self) -> impl Iterator<Item = (&CaseInfo, &str)> {
        let run = self.run.as_ref();
        let cases = run.map(|run| &run.cases[..]).unwrap_or_default();
        let kubelets = run.map(|run| &run.kubelets[..]).unwrap_or_default();
        cases
            .iter()
            .flat_map(|case| kubelets.iter().map(move |kubelet| (case, kubelet.as_str())))
            .filter(|(case, kubelet)| self.attempts(case, kubelet).next().is_none())
    }

    /// The plan's entry for a case.
    pub(crate) fn case_info(&self, id: &CaseId) -> Option<&CaseInfo> {
        self.run.as_ref()?.cases.iter().find(|info| info.matches(id, &id.kubelet))
    }

    /// The model that the run used; `None` on real kubelets and before the run started.
    pub(crate) fn model(&self) -> Option<&Model> {
        self.run.as_ref()?.model.as_ref()
    }

    /// Verdicts that occurred, with their counts, in the order of the totals.
    pub(crate) fn verdict_counts(&self) -> Vec<(Verdict, usize)> {
        const ORDER: [Verdict; 8] = [
            Verdict::Passed,
            Verdict::Flaky,
            Verdict::Reproduced,
            Verdict::Fixed,
            Verdict::Failed,
            Verdict::Error,
            Verdict::Inconclusive,
            Verdict::Skipped,
        ];
        let count = |verdict| self.ended.iter().filter(|ended| ended.result.verdict == verdict).count();
        ORDER.into_iter().map(|verdict| (verdict, count(verdict))).filter(|(_, count)| *count > 0).collect()
    }

    /// Returns whether the run ended early: interrupted, or at its time limit.
    pub(crate) fn was_cut_short(&self) -> bool {
        self.interrupted > 0 || self.timed_out
    }

    /// The name of the last cluster of a kubelet, if its creation failed.
    pub(crate) fn failed_cluster(&self, kubelet: &str) -> Option<&str> {
        let has = |cluster: &&Cluster| cluster.kubelets.iter().any(|it| it == kubelet);
        let cluster = self.clusters.iter().rfind(has)?;
        matches!(cluster.creation, Some(Creation::Failed { .. })).then_some(&cluster.name)
    }

    /// Returns whether a cluster failed, or a planned case has no verdict.
    pub(crate) fn infrastructure_failed(&self) -> bool {
        let cluster_failed = |cluster: &Cluster| {
            matches!(cluster.creation, Some(Creation::Failed { .. }))
                || cluster.deletion.as_ref().is_some_and(|deletion| deletion.error.is_some())
        };
        self.clusters.iter().any(cluster_failed) || self.without_verdict().next().is_some()
    }
}

/// Describes why a case runs again: `retrying more slowly: the kernel was faster`.
pub(crate) fn retry_text(text: &str, result: &CaseResult) -> String {
    format!("{text}: {}", result.why.trim_end())
}

impl RunStart {
    /// Real time of a point in time of the run; in simulated time, counted from the real start.
    pub(crate) fn real_time(&self, at: Timestamp) -> Timestamp {
        self.real_start.saturating_add(at.duration_since(self.at)).unwrap_or(at)
    }

    /// Returns the `--kubelet` argument that selects a kubelet again. In runs that do not state it,
    /// only the model's labels are arguments, if they are not numbered (`v1.32.13-2`).
    pub(crate) fn kubelet_arg(&self, label: &str) -> Option<String> {
        let is_release = |version: KubeletVersion| version.suffix.is_empty();
        let is_arg = || self.model.is_some() && label.parse().is_ok_and(is_release);
        self.kubelet_args.get(label).cloned().or_else(|| is_arg().then(|| label.to_owned()))
    }

    /// Reads a `RunStarted` event; `None` for other events.
    fn from_event(event: &RunEvent) -> Option<Self> {
        let RunEventKind::RunStarted {
            run_id,
            evictlab,
            backend,
            model,
            kubelets,
            kubelet_args,
            cases,
            repeat,
            flaky_result,
            real_start,
            shard,
        } = &event.kind
        else {
            return None;
        };
        Some(Self {
            at: event.at,
            id: run_id.clone(),
            evictlab: evictlab.clone(),
            backend: *backend,
            model: model.clone(),
            kubelets: kubelets.clone(),
            kubelet_args: kubelet_args.clone(),
            cases: cases.clone(),
            repeat: *repeat,
            flaky_result: *flaky_result,
            shard: shard.clone(),
            real_start: real_start.unwrap_or(event.at),
        })
    }
}

impl CaseInfo {
    /// The case with its suite: `message/requests-decide`.
    pub fn suite_and_case(&self) -> String {
        format!("{}/{}", self.suite, self.case)
    }

    /// Returns whether this is the case of `id`, and `kubelet` its kubelet.
    pub(crate) fn matches(&self, id: &CaseId, kubelet: &str) -> bool {
        self.suite == id.suite && self.case == id.case && kubelet == id.kubelet
    }
}

impl CaseId {
    /// The case without kubelet and attempt: `message/requests-decide`.
    pub fn suite_and_case(&self) -> String {
        format!("{}/{}", self.suite, self.case)
    }

    /// The case's name, with the attempt from the second on: `sidecars-are-named #2`.
    pub(crate) fn title(&self) -> String {
        match self.attempt {
            0 | 1 => self.case.clone(),
            attempt => format!("{} #{attempt}", self.case),
        }
    }

    /// `message/requests-decide on v1.32.13`.
    pub(crate) fn full_title(&self) -> String {
        format!("{}/{} on {}", self.suite, self.title(), self.kubelet)
    }
}
