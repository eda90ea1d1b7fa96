//! Measures on a kind cluster that is created for the measurement.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, PoisonError};

use evictlab_case::LoadedCase;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::kubelet_config::{self, ConfigureError};
use evictlab_cluster::{
    Backend, Cluster, ClusterError, ClusterProgress, ClusterRecord, ClusterSource, Docker, KeepPolicy,
    KindBackend, KindConfig, KindOptions, KubeletGroup, NewCluster, Node, Owner, StateDir, StateError,
    is_skew_allowed,
};
use evictlab_report::clock::Clock;
use evictlab_report::{
    InterruptStage, KeptEvidence, Report, ReportError, ReportOptions, Reports, RunDir, reports,
};
use evictlab_rules::{CgroupVersion, KubeletVersion};
use evictlab_runner::{Interrupt, Repeat, RunRequest, new_run_id};
use futures::FutureExt;
use tokio::time::Instant;

use super::figure::{Figure, Target, Unit};
use super::run_timer::{RunTimer, RunTimes};

/// Number of times each node is configured and restored.
const CONFIGURATIONS_PER_NODE: usize = 3;

/// A measurement on a kind cluster.
#[derive(Clone)]
pub struct KindBench {
    /// A case with memory pressure.
    pub case: Arc<LoadedCase>,
    /// The kubelets of the cluster.
    pub group: KubeletGroup,
    /// Number of runs of the case on each kubelet.
    pub repeat: u32,
    /// The image catalog.
    pub catalog: Arc<ImageCatalog>,
    /// The Docker host.
    pub docker: Docker,
    /// The state directory.
    pub state: StateDir,
}

/// Errors of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Error of the cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Error of the state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// Error while a node was configured or restored.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// Error of a report of the measured run.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Error of the run directory or the report thread.
    #[error("failed to create reports of the measured run: {0}")]
    Io(#[from] std::io::Error),
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Durations in seconds.
struct Measurements {
    creation: f64,
    deletion: f64,
    times: RunTimes,
    configured: Vec<f64>,
    restored: Vec<f64>,
}

impl KindBench {
    /// Creates a cluster, runs the case on it, configures and restores its nodes, and deletes it,
    /// also after an error or panic. Only a second interrupt prevents the deletion. `log` gets the
    /// events of the run, `progress` a line for each other step.
    pub async fn measure(
        &self,
        log: Box<dyn Report>,
        interrupt: &Interrupt,
        progress: &dyn Fn(&str),
    ) -> Result<Vec<Figure>, BenchError> {
        let run = new_run_id();
        let name = format!("evictlab-bench-{run}");
        let work = self.measure_on_cluster(&run, &name, log, interrupt, progress);
        // The cluster is deleted even after a panic.
        let result = AssertUnwindSafe(work).catch_unwind().await;
        if interrupt.reports_only.is_cancelled() {
            return Err(BenchError::Interrupted);
        }
        progress("deleting the cluster");
        let began = Instant::now();
        let deleted = evictlab_cluster::delete(&self.docker, &self.state, &name).await;
        let deletion = began.elapsed().as_secs_f64();
        let measurements = result.unwrap_or_else(|panic| resume_unwind(panic))?;
        deleted?;
        let cgroup = self.docker.cgroup_version().await.map_err(ClusterError::from)?;
        Ok(self.figures(&Measurements { deletion, ..measurements }, cgroup))
    }

    async fn measure_on_cluster(
        &self,
        run: &str,
        name: &str,
        log: Box<dyn Report>,
        interrupt: &Interrupt,
        progress: &dyn Fn(&str),
    ) -> Result<Measurements, BenchError> {
        let began = Instant::now();
        let labels = self.group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        let record = ClusterRecord::new(self.docker.id(), name, run, Owner::current(), labels);
        self.state.write(&record)?;
        let base = KindConfig::load(None).map_err(ClusterError::from)?;
        let new = NewCluster { record, group: &self.group, base: &base, nodes: 1 };
        let warning = |text: &str| progress(&format!("warning: {text}"));
        let steps = ClusterProgress { step: progress, warning: &warning };
        let cluster = Cluster::create(&self.docker, &self.state, new, &interrupt.stop, steps).await?;
        let creation = began.elapsed().as_secs_f64();
        let times = self.measure_run(run, name, log, interrupt).await?;
        if interrupt.stop.is_cancelled() {
            return Err(BenchError::Interrupted);
        }
        progress("configuring and restoring the nodes");
        let (configured, restored) = tokio::select! {
            biased;
            durations = measure_configuration(&cluster.nodes) => durations?,
            () = interrupt.stop.cancelled() => return Err(BenchError::Interrupted),
        };
        Ok(Measurements { creation, deletion: 0.0, times, configured, restored })
    }

    /// Runs the case on the cluster.
    async fn measure_run(
        &self,
        run: &str,
        name: &str,
        log: Box<dyn Report>,
        interrupt: &Interrupt,
    ) -> Result<RunTimes, BenchError> {
        let folder = tempfile::tempdir()?;
        // The measured run writes all reports, as any run does.
        let options = ReportOptions {
            run_dir: RunDir::at(&folder.path().join("run"))?,
            stdout: None,
            stress: false,
            evidence: KeptEvidence::All,
            record: None,
            write_baseline: None,
            interrupts: InterruptStage::default(),
        };
        let (timer, times) = RunTimer::new();
        let mut all = reports(options)?;
        all.extend([log, Box::new(timer)]);
        let reports = Reports::start(all, Clock::wall())?;
        let options = KindOptions {
            run: run.to_owned(),
            groups: vec![self.group.clone()],
            clusters: ClusterSource::Kept(name.to_owned()),
            keep: KeepPolicy::Never,
            owner: Owner::current(),
        };
        let backend = Backend::Kind(KindBackend::new(options, self.docker.clone(), self.state.clone()));
        let cases = vec![self.case.clone()];
        let request = RunRequest {
            repeat: Repeat::Times(self.repeat),
            ..RunRequest::new(run.to_owned(), cases, backend, self.catalog.clone())
        };
        evictlab_runner::run(request, reports.events(), interrupt.clone()).await;
        reports.finish();
        let times = times.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(times)
    }

    fn figures(&self, measurements: &Measurements, cgroup: CgroupVersion) -> Vec<Figure> {
        let times = &measurements.times;
        let reason = times.invalid.first().map_or("no case ended", String::as_str);
        let verdict = match cgroup {
            CgroupVersion::V1 => ("pod created to verdict, warm node, notified (cgroup v1)", 10.0),
            CgroupVersion::V2 => ("pod created to verdict, warm node, polled (cgroup v2)", 15.0),
        };
        let (configured, restored) = (&measurements.configured, &measurements.restored);
        let seconds = |at_most| Target { unit: Unit::Seconds, at_most };
        vec![
            self.run_figure(measurements, reason),
            Figure::from_values(verdict.0, seconds(verdict.1), &times.verdict_seconds, reason),
            Figure::from_values("configuring a node", seconds(2.0), configured, "no node was configured"),
            Figure::from_values("restoring a node", seconds(2.0), restored, "no node was restored"),
            self.cpu_figure(times),
        ]
    }

    /// Returns the duration of a whole run with its cluster.
    fn run_figure(&self, measurements: &Measurements, reason: &str) -> Figure {
        let Measurements { creation, deletion, times, .. } = measurements;
        let first_attempt = times.first_attempt_seconds.filter(|_| times.invalid.is_empty());
        Figure {
            figure: format!(
                "`evictlab run`, one memory case, {} kubelets, with creation and deletion of the cluster",
                self.group.kubelets.len()
            ),
            unit: Unit::Seconds,
            at_most: 60.0,
            measured: first_attempt.map(|run| creation + run + deletion),
            note: match first_attempt {
                Some(run) => format!(
                    "creation {creation:.1} s, images, nodes and case {run:.1} s, deletion {deletion:.1} s"
                ),
                None => reason.to_owned(),
            },
            growth: Vec::new(),
        }
    }

    /// Returns the CPU usage of this process while cases are observed.
    fn cpu_figure(&self, times: &RunTimes) -> Figure {
        let cpu = times.cpu_seconds.filter(|_| times.observed_seconds > 0.0);
        let cpu = cpu.map(|cpu| 100.0 * cpu / times.observed_seconds);
        let nodes = self.group.kubelets.len();
        Figure {
            figure: "CPU usage of the harness while waiting".to_owned(),
            unit: Unit::PercentOfACore,
            at_most: 2.0,
            measured: cpu,
            note: match cpu {
                Some(_) => {
                    format!("over {:.0} s of observing {nodes} nodes in parallel", times.observed_seconds)
                }
                None => "no /proc/self/stat on this system, or no case was observed".to_owned(),
            },
            growth: Vec::new(),
        }
    }
}

/// Configures and restores each node several times; returns the durations of both in seconds.
async fn measure_configuration(nodes: &[Node]) -> Result<(Vec<f64>, Vec<f64>), ConfigureError> {
    let (mut configured, mut restored) = (Vec::new(), Vec::new());
    for node in nodes {
        for _ in 0..CONFIGURATIONS_PER_NODE {
            let changes = kubelet_config::with_threshold(
                kubelet_config::base(node.cgroup),
                "memory.available",
                "64Mi",
                None,
            );
            configured.push(kubelet_config::configure(node, &changes).await?.seconds);
            let began = Instant::now();
            kubelet_config::restore(node).await?;
            restored.push(began.elapsed().as_secs_f64());
        }
    }
    Ok((configured, restored))
}

/// Returns the two newest releases of different minor versions that can share a cluster, the newest
/// first; only the newest release if no pair can.
pub fn newest_pair(mut versions: Vec<KubeletVersion>) -> Vec<KubeletVersion> {
    versions.retain(|version| version.suffix.is_empty());
    versions.sort_by(|a, b| b.cmp(a));
    let pairs =
        versions.iter().enumerate().flat_map(|(at, a)| versions[at + 1..].iter().map(move |b| (a, b)));
    let pair = pairs.into_iter().find(|(a, b)| a.minor != b.minor && is_skew_allowed(a, b));
    match pair {
        Some((a, b)) => vec![a.clone(), b.clone()],
        None => versions.into_iter().take(1).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_the_two_newest_kubelets_that_can_share_a_cluster() {
        let rows: [(&[&str], &[&str]); 5] = [
            (&["v1.31.14", "v1.36.2", "v1.32.13"], &["v1.32.13", "v1.31.14"]),
            (&["v1.36.2", "v1.36.1", "v1.34.0", "v1.33.0"], &["v1.36.2", "v1.34.0"]),
            (&["v1.36.2", "v1.31.0", "v1.37.0-rc.1"], &["v1.36.2"]),
            (&["v1.36.2"], &["v1.36.2"]),
            (&[], &[]),
        ];
        for (there, taken) in rows {
            let got = newest_pair(there.iter().map(|text| text.parse().unwrap()).collect());
            assert_eq!(got.iter().map(ToString::to_string).collect::<Vec<_>>(), taken, "{there:?}");
        }
    }
}
