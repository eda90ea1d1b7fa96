//! The runs of all tests of a process: every test waits for its verdict. On kind, one run has all
//! tests. A run on the model uses one processor: each processor runs the tests of some kubelets.

use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use evictlab_case::LoadedCase;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{
    ClusterSource, EmbeddedBackend, EmbeddedOptions, KeepPolicy, KindBackend, KindConfig, KindOptions,
    Kubelet, KubeletSpec, Owner, ReproCommand, StateDir,
};
use evictlab_judge::CaseResult;
use evictlab_report::baseline::Baseline;
use evictlab_report::clock::Clock;
use evictlab_report::{RunDir, VerdictCollector};
use evictlab_runner::{RunRequest, new_run_id};
use tokio::runtime::{Builder, Runtime};

use super::context::{connect_docker, execute, resolve_kubelets, results_dir};
use super::options::{Backend, Test, TestOptions, kubelets};
use super::outcome::TestOutcome;

/// The runs of all selected tests; the first test starts them.
pub(crate) struct SharedRun {
    options: Arc<TestOptions>,
    /// The expected verdicts, if the tests have some.
    baseline: Option<Baseline>,
    selected: Vec<Test>,
    progress: Arc<Progress>,
    verdicts: VerdictCollector,
    run: OnceLock<Mutex<Option<JoinHandle<()>>>>,
}

/// The progress of the run, and a condition variable for its changes.
#[derive(Default)]
struct Progress {
    state: Mutex<RunProgress>,
    changed: Condvar,
}

#[derive(Default)]
struct RunProgress {
    labels: Vec<(Option<KubeletSpec>, String)>,
    no_cluster: Option<String>,
    finished: bool,
}

impl Progress {
    fn change(&self, change: impl FnOnce(&mut RunProgress)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl SharedRun {
    /// Returns a run of these tests that has not started.
    pub(crate) fn new(options: Arc<TestOptions>, selected: Vec<Test>) -> Self {
        let progress: Arc<Progress> = Arc::default();
        let waiting = progress.clone();
        // A test that has not found its result waits already, or still holds the lock of the
        // progress.
        let verdicts = VerdictCollector::with_notification(move || waiting.change(|_| ()));
        let baseline = options.is_shipped_on_the_model().then(baseline);
        Self { options, baseline, selected, progress, verdicts, run: OnceLock::new() }
    }

    /// Waits for the outcome of a test.
    pub(crate) fn outcome(&self, test: &Test) -> TestOutcome {
        self.run.get_or_init(|| {
            let (selected, backend) = (self.selected.clone(), self.options.backend);
            let (progress, verdicts) = (self.progress.clone(), self.verdicts.clone());
            let run = thread::spawn(move || run_parts(backend, selected, &progress, &verdicts));
            Mutex::new(Some(run))
        });
        let mut state = self.progress.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let label = state.labels.iter().find(|(spec, _)| *spec == test.kubelet).map(|(_, label)| label);
            if let Some(label) = label
                && let Some(result) = self.result(test, label)
            {
                return self.judged(test, label, result);
            }
            if let Some(why) = &state.no_cluster {
                return TestOutcome::NoCluster { why: why.clone(), required: self.options.require_cluster };
            }
            if state.finished {
                return TestOutcome::NoVerdict;
            }
            state = self.progress.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn judged(&self, test: &Test, label: &str, result: Arc<CaseResult>) -> TestOutcome {
        let verdict = result.verdict.without_tries();
        let (Some(baseline), true) = (&self.baseline, verdict.is_success()) else {
            return TestOutcome::Judged(result);
        };
        match baseline.expected(&test.case.suite, &test.case.case.name.to_string(), label) {
            Some(expected) if expected == verdict => TestOutcome::Judged(result),
            expected => TestOutcome::Changed(result, expected),
        }
    }

    /// Returns the result of a test on the kubelet with this label, if the run has it.
    fn result(&self, test: &Test, label: &str) -> Option<Arc<CaseResult>> {
        let (suite, name) = (&test.case.suite, test.case.case.name.to_string());
        self.verdicts.last_result(|id| id.suite == *suite && id.case == name && id.kubelet == label)
    }
}

/// Reads the baseline of the workspace, independent of the working directory.
fn baseline() -> Baseline {
    let path = results_dir().join("baseline.json");
    Baseline::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

impl Drop for SharedRun {
    fn drop(&mut self) {
        if let Some(run) = self.run.get_mut().and_then(|run| run.get_mut().ok()?.take()) {
            let _ended = run.join();
        }
    }
}

/// Returns the cases of tests, each once.
fn cases_of(tests: &[Test]) -> Vec<Arc<LoadedCase>> {
    let mut cases: Vec<Arc<LoadedCase>> = Vec::new();
    for test in tests {
        if cases.iter().all(|case| case.id() != test.case.id()) {
            cases.push(test.case.clone());
        }
    }
    cases
}

/// Runs the tests, and waits for the end of all runs.
fn run_parts(backend: Backend, tests: Vec<Test>, progress: &Progress, verdicts: &VerdictCollector) {
    thread::scope(|threads| {
        let start = |part: Vec<Test>| {
            threads.spawn(move || {
                if let Err(why) = run(backend, &part, progress, verdicts) {
                    progress.change(|state| state.no_cluster = Some(why));
                }
            })
        };
        let runs: Vec<_> = parts(backend, tests).into_iter().map(start).collect();
        for run in runs {
            if run.join().is_err() {
                eprintln!("error: a run panicked; `evictlab gc` removes its leftovers");
            }
        }
    });
    progress.change(|state| state.finished = true);
}

/// Returns the tests of each run.
fn parts(backend: Backend, tests: Vec<Test>) -> Vec<Vec<Test>> {
    if backend == Backend::Kind {
        return vec![tests];
    }
    let kubelets = kubelets(&tests);
    let count = thread::available_parallelism().map_or(1, NonZero::get).min(kubelets.len());
    let mut parts = vec![vec![]; count];
    for test in tests {
        let kubelet = kubelets.iter().position(|kubelet| *kubelet == test.kubelet).unwrap_or(0);
        parts[kubelet % count].push(test);
    }
    parts
}

/// Runs the cases of the tests. Returns an error if no cluster is available.
fn run(
    backend: Backend,
    selected: &[Test],
    progress: &Progress,
    verdicts: &VerdictCollector,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = match backend {
        Backend::Embedded => Builder::new_current_thread().enable_all().start_paused(true).build(),
        Backend::Kind => Runtime::new(),
    };
    let runtime = runtime.map_err(|error| text(&error))?;
    let _within = runtime.enter();
    let catalog = ImageCatalog::load(None).map_err(|error| text(&error))?;
    let unique = kubelets(selected);
    let set_labels = |kubelets: &[Kubelet]| {
        let labels: Vec<_> = kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        progress.change(|state| state.labels.extend(unique.iter().cloned().zip(labels)));
    };
    let id = new_run_id();
    let (clock, backend): (_, evictlab_cluster::Backend) = match backend {
        Backend::Embedded => {
            let clock = Clock::model();
            let specs: Vec<KubeletSpec> = unique.iter().flatten().cloned().collect();
            let kubelets =
                evictlab_cluster::modelled_kubelets(&specs, &catalog).map_err(|error| text(&error))?;
            set_labels(&kubelets);
            let options = EmbeddedOptions { kubelets, nodes: 1, ..EmbeddedOptions::default() };
            let words = ReproCommand {
                options: String::new(),
                on_real_kubelets: "EVICTLAB_BACKEND=kind cargo test -p evictlab-cases".to_owned(),
            };
            let backend = EmbeddedBackend::new(options, words, &clock).map_err(|error| text(&error))?;
            (clock, evictlab_cluster::Backend::Embedded(backend))
        }
        Backend::Kind => {
            let docker = runtime.block_on(connect_docker())?;
            let kubelets = runtime.block_on(resolve_kubelets(&docker, &catalog, &unique))?;
            set_labels(&kubelets);
            let base = KindConfig::load(None).map_err(|error| text(&error))?;
            let options = KindOptions {
                run: id.clone(),
                groups: evictlab_cluster::group_by_skew(kubelets).map_err(|error| text(&error))?,
                clusters: ClusterSource::New { name: format!("evictlab-{id}"), base, nodes: 1 },
                keep: KeepPolicy::Never,
                owner: Owner::current(),
            };
            let state = StateDir::open().map_err(|error| text(&error))?;
            (Clock::wall(), evictlab_cluster::Backend::Kind(KindBackend::new(options, docker, state)))
        }
    };
    let request = RunRequest::new(id, cases_of(selected), backend, Arc::new(catalog));
    let run_dir = RunDir::create(&results_dir(), jiff::Timestamp::now()).map_err(|error| text(&error))?;
    eprintln!("evidence: {}", run_dir.path().display());
    execute(&runtime, request, run_dir, clock, verdicts)
}
