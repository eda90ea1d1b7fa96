//! Measuring on a cluster made for it, and deleting that.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, PoisonError};

use evictlab_rules::KubeletVersion;
use futures::FutureExt;
use tokio::time::Instant;

use super::stopwatch::{Stopwatch, Times};
use super::{Figure, Unit};
use crate::case::LoadedCase;
use crate::clock::Clock;
use crate::cluster::{
    self, Base, Cluster, ClusterError, Clusters, DEADLINE, Docker, Group, Keep, KindBackend, Made, Node,
    Owner, Record, StateDir, StateError, allowed,
};
use crate::images::Lock;
use crate::report::{Report, ReportError, Reports, RunDir, Wanted, reports};
use crate::schedule::{self, Interrupt, Repeat, Request, new_id};
use crate::tune::{self, TuneError};

/// How often each node is tuned and put back.
const TUNINGS: usize = 3;

/// What is measured with.
#[derive(Clone)]
pub struct Bench {
    /// A case with pressure on memory.
    pub case: Arc<LoadedCase>,
    /// The kubelets, of one cluster.
    pub group: Group,
    /// How often the case is run on each.
    pub repeat: u32,
    /// Image names.
    pub lock: Arc<Lock>,
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The state folder.
    #[error(transparent)]
    State(#[from] StateError),
    /// A node.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The reports of the measured run.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A folder or a thread for them.
    #[error("the measured run's reports cannot be made: {0}")]
    Io(#[from] std::io::Error),
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Makes a cluster, runs the case on it, tunes its nodes and puts them back, and deletes it, whatever happened, unless a second interrupt
/// forbids that. `shown` is given the run's events, and `progress` a line for each step around it.
pub async fn figures(
    bench: &Bench,
    docker: &Docker,
    state: &StateDir,
    shown: Box<dyn Report>,
    interrupt: &Interrupt,
    progress: &dyn Fn(&str),
) -> Result<Vec<Figure>, BenchError> {
    let run = new_id();
    let name = format!("evictlab-bench-{run}");
    let measured = measured(bench, docker, state, (&run, &name), shown, interrupt, progress);
    // A panic is no reason to leave the cluster.
    let measured = AssertUnwindSafe(measured).catch_unwind().await;
    if interrupt.reports_only.is_cancelled() {
        return Err(BenchError::Interrupted);
    }
    progress("deleting the cluster");
    let began = Instant::now();
    let deleted = cluster::delete(docker, state, &name).await;
    let deletion = began.elapsed().as_secs_f64();
    let measured = measured.unwrap_or_else(|panic| resume_unwind(panic))?;
    deleted?;
    Ok(measured.figures(bench, docker.cgroup_v1().await.map_err(ClusterError::from)?, deletion))
}

/// Seconds of everything.
struct Measured {
    creation: f64,
    times: Times,
    tuned: Vec<f64>,
    restored: Vec<f64>,
}

async fn measured(
    bench: &Bench,
    docker: &Docker,
    state: &StateDir,
    (run, name): (&str, &str),
    shown: Box<dyn Report>,
    interrupt: &Interrupt,
    progress: &dyn Fn(&str),
) -> Result<Measured, BenchError> {
    let began = Instant::now();
    let labels = bench.group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
    let record = Record::new(name, run, Owner::this(), labels, DEADLINE);
    state.write(&record)?;
    let base = Base::load(None).map_err(ClusterError::from)?;
    let plan = (&bench.group, &base, 1);
    let cluster = Cluster::create(docker, state, record, plan, &interrupt.stop, progress).await?;
    let creation = began.elapsed().as_secs_f64();

    let folder = tempfile::tempdir()?;
    // What a run leaves costs it time, so it is left here, too.
    let wanted = Wanted {
        run_dir: RunDir::at(&folder.path().join("run"))?,
        stdout: None,
        stress: false,
        record: None,
        write_baseline: None,
    };
    let (stopwatch, times) = Stopwatch::new();
    let mut all = reports(wanted)?;
    all.extend([shown, Box::new(stopwatch)]);
    let reports = Reports::start(all, Clock::wall())?;
    let made = Made {
        run: run.to_owned(),
        groups: vec![bench.group.clone()],
        clusters: Clusters::Kept(name.to_owned()),
        keep: Keep::Never,
        owner: Owner::this(),
    };
    let request = Request {
        run: run.to_owned(),
        cases: vec![bench.case.clone()],
        backend: Box::new(KindBackend::new(made, docker.clone(), state.clone())),
        repeat: Repeat::Times(bench.repeat),
        timeout: None,
        lock: bench.lock.clone(),
        baseline: None,
    };
    schedule::run(request, reports.events(), interrupt.clone()).await;
    reports.finish();
    let times = times.lock().unwrap_or_else(PoisonError::into_inner).clone();

    if interrupt.stop.is_cancelled() {
        return Err(BenchError::Interrupted);
    }
    progress("tuning the nodes and putting them back");
    let tunings = async {
        let (mut tuned, mut restored) = (Vec::new(), Vec::new());
        for node in &cluster.nodes {
            for _ in 0..TUNINGS {
                let (there, back) = there_and_back(node).await?;
                tuned.push(there);
                restored.push(back);
            }
        }
        Ok::<_, TuneError>((tuned, restored))
    };
    let (tuned, restored) = tokio::select! {
        biased;
        timed = tunings => timed?,
        () = interrupt.stop.cancelled() => return Err(BenchError::Interrupted),
    };
    Ok(Measured { creation, times, tuned, restored })
}

/// Tunes a node as for a case and puts it back; both in seconds.
async fn there_and_back(node: &Node) -> Result<(f64, f64), TuneError> {
    let changes = tune::with_threshold(tune::base(node.cgroup_v1), "memory.available", "64Mi", None);
    let tuned = tune::tune(node, &changes).await?;
    let began = Instant::now();
    tune::restore(node).await?;
    Ok((tuned.seconds, began.elapsed().as_secs_f64()))
}

impl Measured {
    fn figures(&self, bench: &Bench, cgroup_v1: bool, deletion: f64) -> Vec<Figure> {
        let times = &self.times;
        let why = times.unsound.first().map_or("no case ended", String::as_str);
        let kubelets = bench.group.kubelets.len();
        let whole = times.first_attempt.map(|case| self.creation + case + deletion);
        let verdict = match cgroup_v1 {
            true => ("pod created to verdict, warm node, notified (cgroup v1)", 10.0),
            false => ("pod created to verdict, warm node, polled (cgroup v2)", 15.0),
        };
        let cpu = times.cpu.filter(|_| times.watched > 0.0).map(|cpu| 100.0 * cpu / times.watched);
        vec![
            Figure {
                figure: format!(
                    "`evictlab run`, one memory case, {kubelets} kubelets, a cluster made and deleted"
                ),
                unit: Unit::Seconds,
                at_most: 60.0,
                measured: whole.filter(|_| times.unsound.is_empty()),
                note: match (whole, times.first_attempt) {
                    (Some(_), Some(case)) if times.unsound.is_empty() => format!(
                        "making it {:.1} s, images, nodes and case {case:.1} s, deleting it {deletion:.1} s",
                        self.creation
                    ),
                    _ => why.to_owned(),
                },
            },
            Figure::median(verdict.0, (Unit::Seconds, verdict.1), &times.verdicts, why),
            Figure::median("tuning a node", (Unit::Seconds, 2.0), &self.tuned, "no node was tuned"),
            Figure::median(
                "putting a node back",
                (Unit::Seconds, 2.0),
                &self.restored,
                "no node was put back",
            ),
            Figure {
                figure: "the harness's own CPU while waiting".to_owned(),
                unit: Unit::PercentOfACore,
                at_most: 2.0,
                measured: cpu,
                note: match cpu {
                    Some(_) => format!("over {:.0} s of watching {kubelets} nodes at once", times.watched),
                    None => "this system has no /proc/self/stat, or no case was watched".to_owned(),
                },
            },
        ]
    }
}

/// The two newest releases of different minors that can share a cluster; one where there are no two. Newest first.
pub fn pair(mut versions: Vec<KubeletVersion>) -> Vec<KubeletVersion> {
    versions.retain(|version| version.suffix.is_empty());
    versions.sort_by(|a, b| b.cmp(a));
    let pairs =
        versions.iter().enumerate().flat_map(|(at, a)| versions[at + 1..].iter().map(move |b| (a, b)));
    let found = pairs.into_iter().find(|(a, b)| a.minor != b.minor && allowed(a, b));
    match found {
        Some((a, b)) => vec![a.clone(), b.clone()],
        None => versions.into_iter().take(1).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_newest_that_can_share_a_cluster_are_taken() {
        let rows: [(&[&str], &[&str]); 5] = [
            (&["v1.31.14", "v1.36.2", "v1.32.13"], &["v1.32.13", "v1.31.14"]),
            (&["v1.36.2", "v1.36.1", "v1.34.0", "v1.33.0"], &["v1.36.2", "v1.34.0"]),
            (&["v1.36.2", "v1.31.0", "v1.37.0-rc.1"], &["v1.36.2"]),
            (&["v1.36.2"], &["v1.36.2"]),
            (&[], &[]),
        ];
        for (there, taken) in rows {
            let got = pair(there.iter().map(|text| text.parse().unwrap()).collect());
            assert_eq!(got.iter().map(ToString::to_string).collect::<Vec<_>>(), taken, "{there:?}");
        }
    }
}
