//! All tests of one process: one run, one cluster, and every test waits for its own verdict.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{
    self, Base, Clusters, Docker, EmbeddedBackend, Keep, KindBackend, Kubelet, KubeletSpec, Made, Owner,
    Shape, StateDir, Words,
};
use evictlab_runner::images::{Lock, Resolve};
use evictlab_runner::judge::Judgement;
use evictlab_runner::report::{Report, ReportError, Reports, RunDir, RunEvent, Wanted, What, reports};
use evictlab_runner::schedule::{self, Interrupt, Repeat, Request, new_id};
use tokio::runtime::{Builder, Runtime};

use super::asked::{Asked, Backend, Test, kubelets};
use super::outcome::Outcome;

/// Where the runs' files go: the workspace's results, wherever the tests are run from.
pub fn results() -> PathBuf {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR"));
    cases.parent().unwrap_or(cases).join("results")
}

/// The run of all chosen tests, begun by the first that asks.
pub struct Whole {
    asked: Arc<Asked>,
    chosen: Vec<Test>,
    verdicts: Arc<Verdicts>,
    run: OnceLock<Mutex<Option<JoinHandle<()>>>>,
}

/// The verdicts as they come: suite, case and kubelet label to judgement.
#[derive(Default)]
struct Verdicts {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    judged: HashMap<(String, String, String), Judgement>,
    labels: Vec<(Option<KubeletSpec>, String)>,
    no_cluster: Option<String>,
    over: bool,
}

impl Verdicts {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// A report that hands verdicts to the tests that wait for them.
struct Hand(Arc<Verdicts>);

impl Report for Hand {
    fn name(&self) -> &'static str {
        "tests"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let What::CaseEnded { id, judgement, .. } = &event.what {
            let key = (id.suite.clone(), id.case.clone(), id.kubelet.clone());
            self.0.change(|state| drop(state.judged.insert(key, (**judgement).clone())));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}

impl Whole {
    /// A run of these tests, not begun yet.
    pub fn new(asked: Arc<Asked>, chosen: Vec<Test>) -> Self {
        Self { asked, chosen, verdicts: Arc::default(), run: OnceLock::new() }
    }

    /// The outcome of one of the tests; waits for it.
    pub fn outcome(&self, test: &Test) -> Outcome {
        self.run.get_or_init(|| {
            let (chosen, verdicts) = (self.chosen.clone(), self.verdicts.clone());
            let backend = self.asked.backend;
            let run = thread::spawn(move || {
                if let Err(why) = run(backend, &chosen, &verdicts) {
                    verdicts.change(|state| state.no_cluster = Some(why));
                }
                verdicts.change(|state| state.over = true);
            });
            Mutex::new(Some(run))
        });
        let mut state = self.verdicts.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let label = state.labels.iter().find(|(spec, _)| *spec == test.kubelet).map(|(_, label)| label);
            if let Some(label) = label {
                let key = (test.case.suite.clone(), test.case.case.name.to_string(), label.clone());
                if let Some(judgement) = state.judged.get(&key) {
                    return Outcome::Judged(Box::new(judgement.clone()));
                }
            }
            if let Some(why) = &state.no_cluster {
                return Outcome::NoCluster { why: why.clone(), required: self.asked.require_cluster };
            }
            if state.over {
                return Outcome::Nothing;
            }
            state = self.verdicts.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let run = self.run.get_mut().and_then(|run| run.get_mut().ok()?.take());
        if run.is_some_and(|run| run.join().is_err()) {
            eprintln!("error: the run panicked; `evictlab gc` finds what it left");
        }
    }
}

/// Runs the tests' cases. An error says why no cluster is to be had.
fn run(backend: Backend, chosen: &[Test], verdicts: &Arc<Verdicts>) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = match backend {
        Backend::Embedded => Builder::new_current_thread().enable_all().start_paused(true).build(),
        Backend::Kind => Runtime::new(),
    };
    let runtime = runtime.map_err(|error| text(&error))?;
    let _within = runtime.enter();
    let lock = Lock::load(None).map_err(|error| text(&error))?;
    let unique = kubelets(chosen);
    let known = |kubelets: &[Kubelet]| {
        let labels: Vec<_> = kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        verdicts.change(|state| state.labels = unique.iter().cloned().zip(labels).collect());
    };
    let id = new_id();
    let (clock, backend): (_, Box<dyn cluster::Backend>) = match backend {
        Backend::Embedded => {
            let clock = Clock::model();
            let specs: Vec<KubeletSpec> = unique.iter().flatten().cloned().collect();
            let kubelets = cluster::modelled(&specs, &lock).map_err(|error| text(&error))?;
            known(&kubelets);
            let shape = Shape { kubelets, nodes: 1, ..Shape::default() };
            let words = Words {
                options: String::new(),
                on_real_kubelets: "EVICTLAB_BACKEND=kind cargo test -p cases".to_owned(),
            };
            (clock, Box::new(EmbeddedBackend::new(shape, words, &clock).map_err(|error| text(&error))?))
        }
        Backend::Kind => {
            let docker = runtime.block_on(ready())?;
            let kubelets = runtime.block_on(resolved(&docker, &lock, &unique))?;
            known(&kubelets);
            let base = Base::load(None).map_err(|error| text(&error))?;
            let made = Made {
                run: id.clone(),
                groups: cluster::group(kubelets).map_err(|error| text(&error))?,
                clusters: Clusters::New { name: format!("evictlab-{id}"), base, nodes: 1 },
                keep: Keep::Never,
                owner: Owner::this(),
            };
            let state = StateDir::open().map_err(|error| text(&error))?;
            (Clock::wall(), Box::new(KindBackend::new(made, docker, state)))
        }
    };
    let mut cases: Vec<_> = Vec::new();
    for test in chosen {
        if cases.iter().all(|case: &Arc<evictlab_runner::case::LoadedCase>| case.id() != test.case.id()) {
            cases.push(test.case.clone());
        }
    }
    let lock = Arc::new(lock);
    let request =
        Request { run: id, cases, backend, repeat: Repeat::Times(1), timeout: None, lock, baseline: None };
    let run_dir = RunDir::create(&results(), jiff::Timestamp::now()).map_err(|error| text(&error))?;
    eprintln!("evidence: {}", run_dir.path().display());
    start(&runtime, request, run_dir, clock, Some(Box::new(Hand(verdicts.clone()))))
}

/// Runs a request with every report but the terminal's, and one more.
pub fn start(
    runtime: &Runtime,
    request: Request,
    run_dir: RunDir,
    clock: Clock,
    hand: Option<Box<dyn Report>>,
) -> Result<(), String> {
    let mut all =
        reports(Wanted { run_dir, stdout: None, stress: false, record: None, write_baseline: None })
            .map_err(|error| error.to_string())?;
    all.extend(hand);
    let reports = Reports::start(all, clock).map_err(|error| error.to_string())?;
    let _within = runtime.enter();
    let interrupt = Interrupt::listen().map_err(|error| error.to_string())?;
    runtime.block_on(schedule::run(request, reports.events(), interrupt));
    for failure in reports.finish().failures {
        eprintln!("error: {failure}");
    }
    Ok(())
}

/// Docker and kind, if they are there.
pub async fn ready() -> Result<Docker, String> {
    let docker = Docker::connect().await.map_err(|error| error.to_string())?;
    cluster::kind_version().await.map_err(|error| error.to_string())?;
    Ok(docker)
}

/// The kubelets by their images; the newest at hand where none was named. Tests pull nothing for themselves.
pub async fn resolved(
    docker: &Docker,
    lock: &Lock,
    specs: &[Option<KubeletSpec>],
) -> Result<Vec<Kubelet>, String> {
    let overrides = Default::default();
    let resolve = Resolve { docker, lock, overrides: &overrides, progress: &|text| eprintln!("{text}") };
    let mut named = Vec::new();
    for spec in specs {
        named.push(match spec {
            Some(spec) => spec.clone(),
            None => resolve.newest_here().await.map_err(|error| error.to_string())?.ok_or(
                "there is no node image (kindest/node) in Docker; name kubelets in EVICTLAB_KUBELETS",
            )?,
        });
    }
    resolve.all(&named).await.map_err(|error| error.to_string())
}
