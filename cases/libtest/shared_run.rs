//! One run for all tests of a process, on one cluster: every test waits for its verdict.

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

/// The run of all selected tests; the first test starts it.
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
            let run = thread::spawn(move || {
                if let Err(why) = run(backend, &selected, &progress, &verdicts) {
                    progress.change(|state| state.no_cluster = Some(why));
                }
                progress.change(|state| state.finished = true);
            });
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
        let run = self.run.get_mut().and_then(|run| run.get_mut().ok()?.take());
        if run.is_some_and(|run| run.join().is_err()) {
            eprintln!("error: the run panicked; `evictlab gc` removes its leftovers");
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
        progress.change(|state| state.labels = unique.iter().cloned().zip(labels).collect());
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
