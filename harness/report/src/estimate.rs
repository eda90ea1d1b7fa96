//! Durations of cases in earlier runs, to estimate that of a planned one.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use evictlab_judge::Verdict;

use crate::RecordedRun;
use crate::backend_name::BackendName;
use crate::retention::{RetentionError, runs_by_age};

/// Maximum number of runs that are read.
const MAX_RUNS: usize = 10;

/// Durations of the newest runs on a backend.
#[derive(Clone, Debug, Default)]
pub struct EarlierRuns {
    /// Number of runs.
    pub runs: usize,
    /// Newest duration by `suite/case` and the label of the kubelet, in seconds; simulated time on
    /// a model.
    by_case: HashMap<(String, String), f64>,
    /// Real duration and number of executions of the runs on a model.
    real: (f64, usize),
}

impl EarlierRuns {
    /// Reads the newest runs in `results` that were on this backend; directories that are not runs
    /// are passed over.
    ///
    /// # Errors
    /// The directory exists but cannot be listed.
    pub fn read(results: &Path, backend: BackendName) -> Result<Self, RetentionError> {
        let mut earlier = Self::default();
        // From old to new: the newest duration of a case remains.
        let dirs = runs_by_age(results)?;
        for dir in dirs.iter().skip(dirs.len().saturating_sub(MAX_RUNS)) {
            if let Ok(run) = RecordedRun::read(dir) {
                earlier.add(dir, &run, backend);
            }
        }
        Ok(earlier)
    }

    fn add(&mut self, dir: &Path, run: &RecordedRun, backend: BackendName) {
        let state = run.state();
        let Some(start) = state.run.as_ref().filter(|start| start.backend == backend) else { return };
        self.runs += 1;
        let executed: Vec<_> =
            state.ended.iter().filter(|ended| ended.result.verdict != Verdict::Skipped).collect();
        for ended in &executed {
            let case = ended.id.suite_and_case();
            self.by_case.insert((case, ended.id.kubelet.clone()), ended.seconds);
        }
        // The events of a model have simulated times; the last file of a run shows its real end.
        let end = fs::metadata(dir.join("finished.json")).and_then(|file| file.modified());
        let start = SystemTime::from(start.real_start);
        if let Some(real) = end.ok().and_then(|end| end.duration_since(start).ok()) {
            self.real.0 += real.as_secs_f64();
            self.real.1 += executed.len();
        }
    }

    /// Returns the duration of a case, in seconds; simulated time on a model.
    pub fn seconds(&self, suite: &str, case: &str, kubelet: &str) -> Option<f64> {
        self.by_case.get(&(format!("{suite}/{case}"), kubelet.to_owned())).copied()
    }

    /// Returns the mean real duration of an execution with everything around it, in seconds: of a
    /// model, which simulates the time of its nodes in parallel.
    pub fn real_seconds_per_execution(&self) -> Option<f64> {
        let (seconds, executions) = self.real;
        (executions > 0).then(|| seconds / executions as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_duration_of_a_case_remains() {
        let results = tempfile::tempdir().unwrap();
        let run = |name: &str, backend: BackendName, seconds: f64| {
            let dir = results.path().join(name).join("artifacts");
            fs::create_dir_all(&dir).unwrap();
            let at = "2026-11-21T09:30:12Z";
            let started = serde_json::json!({
                "at": at, "type": "run-started", "run": "r", "evictlab": "1", "backend": backend, "model": null,
                "kubelets": ["v1.32.13"], "cases": [],
            });
            let ended = serde_json::json!({
                "at": at, "type": "case-ended", "suite": "s", "case": "c", "kubelet": "v1.32.13", "attempt": 1,
                "node": null, "seconds": seconds, "result": {"verdict": "passed", "why": ""},
            });
            fs::write(dir.join("events.jsonl"), format!("{started}\n{ended}\n")).unwrap();
        };
        run("2026-11-21T09-30-12Z", BackendName::Kind, 1.5);
        run("2026-11-21T10-30-12Z", BackendName::Kind, 2.5);
        run("2026-11-21T11-30-12Z", BackendName::Embedded, 9.0);
        fs::create_dir(results.path().join("sample")).unwrap();
        let earlier = EarlierRuns::read(results.path(), BackendName::Kind).unwrap();
        assert_eq!((earlier.runs, earlier.seconds("s", "c", "v1.32.13")), (2, Some(2.5)));
        assert_eq!(earlier.seconds("s", "c", "v1.31.14"), None);
        assert_eq!(EarlierRuns::read(&results.path().join("none"), BackendName::Kind).unwrap().runs, 0);
    }
}
