//! The verdicts of each case and kubelet over many runs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::fisher::{Counts, probability_of_more_failures};
use crate::backend_name::BackendName;
use crate::median::median;
use crate::recorded::RecordedRun;
use crate::run_state::{EndedCase, RunStart, RunState};
use evictlab_judge::Verdict;

/// Highest p-value of a significant change, as in Sippy's component readiness.
const MAX_P_VALUE: f64 = 0.05;
/// Default of the number of runs in the recent period.
const DEFAULT_RECENT: usize = 10;
/// Minimum number of failures of a significant change, as in Sippy's component readiness.
const MIN_FAILURES: usize = 3;

/// One execution of a case.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastResult {
    /// Id of the run.
    pub run: String,
    /// Start of the run; simulated time on the embedded cluster.
    pub at: Timestamp,
    /// Label of the kubelet, with its patch version.
    pub kubelet: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Duration, in seconds.
    pub seconds: f64,
}

/// Change of a case over the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "value")]
pub enum SeriesChange {
    /// No change, and no failure at random.
    Stable,
    /// Failed in all of the newest runs, this number, and passed before.
    NewlyFailing(usize),
    /// Fails significantly more often in the recent period: the p-value.
    Regressed(f64),
    /// Fails significantly less often in the recent period: the p-value.
    Improved(f64),
    /// Passed and failed, or passed only on a later try.
    Flaky,
}

impl SeriesChange {
    /// Returns whether the case fails now, or fails more often, than before.
    pub fn is_worse(self) -> bool {
        matches!(self, Self::NewlyFailing(_) | Self::Regressed(_))
    }
}

/// The executions of a case on the kubelets of a minor version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// `suite/case`.
    pub case: String,
    /// Minor version of the kubelets, `v1.32`, or the label of another kubelet.
    pub kubelet: String,
    /// Backend of the runs. A model and real kubelets differ in their verdicts and durations.
    pub backend: BackendName,
    /// The executions, oldest first; without skipped ones.
    pub outcomes: Vec<PastResult>,
    /// Share of successes among the conclusive executions, from 0 to 1; `None` without any.
    pub pass_rate: Option<f64>,
    /// Median duration of the earlier and of the recent period, in seconds.
    pub seconds: [Option<f64>; 2],
    /// The change.
    pub change: SeriesChange,
}

/// The verdicts of many runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Number of runs.
    pub runs: usize,
    /// Maximum number of the newest runs of a series that form its recent period.
    pub recent: usize,
    /// One series for each case, kubelet and backend, by name.
    pub series: Vec<Series>,
}

impl History {
    /// Collects runs. In each series, the newest `recent` runs are compared with all earlier ones;
    /// without a number, ten, at most half of its runs. Runs are ordered by their real start.
    pub fn new(runs: &[RecordedRun], recent: Option<usize>) -> Self {
        let mut states: Vec<&RunState> = runs.iter().map(RecordedRun::state).collect();
        states.sort_by_key(|state| state.run.as_ref().map(|run| run.real_start));
        let mut all: BTreeMap<SeriesKey, Vec<Vec<PastResult>>> = BTreeMap::new();
        for state in &states {
            let Some(run) = &state.run else { continue };
            let mut of_run: BTreeMap<SeriesKey, Vec<PastResult>> = BTreeMap::new();
            let was_executed = |ended: &&EndedCase| ended.result.verdict != Verdict::Skipped;
            for ended in state.ended.iter().filter(was_executed) {
                let (case, kubelet) = (ended.id.suite_and_case(), state.row_name(&ended.id.kubelet));
                let key = SeriesKey { case, kubelet, backend: run.backend };
                of_run.entry(key).or_default().push(PastResult::new(run, ended));
            }
            for (key, outcomes) in of_run {
                all.entry(key).or_default().push(outcomes);
            }
        }
        let recent_of = |runs: usize| recent.unwrap_or_else(|| DEFAULT_RECENT.min(runs.div_ceil(2)));
        let series = all.into_iter().map(|(key, mut runs)| {
            let newest = runs.split_off(runs.len().saturating_sub(recent_of(runs.len())));
            Series::new(key, [runs, newest].map(|runs| runs.concat()))
        });
        Self { runs: states.len(), recent: recent_of(states.len()), series: series.collect() }
    }

    /// Kubelet of a series, with its backend if the runs had different ones.
    pub(super) fn kubelet(&self, series: &Series) -> String {
        let has_backends = self.series.iter().any(|other| other.backend != series.backend);
        if has_backends { format!("{}, {}", series.kubelet, series.backend) } else { series.kubelet.clone() }
    }
}

/// Key of a series: its executions have the same case, kubelet and backend.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SeriesKey {
    case: String,
    kubelet: String,
    backend: BackendName,
}

impl PastResult {
    fn new(run: &RunStart, ended: &EndedCase) -> Self {
        Self {
            run: run.id.clone(),
            at: run.real_start,
            kubelet: ended.id.kubelet.clone(),
            verdict: ended.result.verdict,
            seconds: ended.seconds,
        }
    }
}

impl Series {
    fn new(key: SeriesKey, periods: [Vec<PastResult>; 2]) -> Self {
        let SeriesKey { case, kubelet, backend } = key;
        let [earlier, recent] = periods.each_ref().map(|outcomes| counts(outcomes));
        let seconds =
            periods.each_ref().map(|outcomes| median(outcomes.iter().map(|outcome| outcome.seconds)));
        let outcomes: Vec<PastResult> = periods.into_iter().flatten().collect();
        let Counts { passed, failed } = counts(&outcomes);
        let pass_rate = (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64);
        let change = change(earlier, recent, &outcomes);
        Self { case, kubelet, backend, outcomes, pass_rate, seconds, change }
    }
}

/// Counts successes and failures. Inconclusive executions and errors are neither.
fn counts(outcomes: &[PastResult]) -> Counts {
    let number = |wanted: bool| {
        let is = |outcome: &&PastResult| is_success(outcome.verdict) == Some(wanted);
        outcomes.iter().filter(is).count()
    };
    Counts { passed: number(true), failed: number(false) }
}

/// Returns whether a verdict is a success; `None` if it is not conclusive.
fn is_success(verdict: Verdict) -> Option<bool> {
    verdict.is_conclusive().then(|| verdict.is_success())
}

fn change(earlier: Counts, recent: Counts, outcomes: &[PastResult]) -> SeriesChange {
    let worse = probability_of_more_failures(earlier, recent);
    if worse <= MAX_P_VALUE && recent.failed >= MIN_FAILURES {
        return SeriesChange::Regressed(worse);
    }
    let better = probability_of_more_failures(recent, earlier);
    if better <= MAX_P_VALUE && earlier.failed >= MIN_FAILURES {
        return SeriesChange::Improved(better);
    }
    let conclusive: Vec<bool> = outcomes.iter().filter_map(|outcome| is_success(outcome.verdict)).collect();
    let newest_failures = conclusive.iter().rev().take_while(|success| !**success).count();
    let before = &conclusive[..conclusive.len() - newest_failures];
    if newest_failures > 0 && !before.is_empty() && before.iter().all(|success| *success) {
        return SeriesChange::NewlyFailing(newest_failures);
    }
    let is_flaky = outcomes.iter().any(|outcome| outcome.verdict == Verdict::Flaky);
    if is_flaky || conclusive.iter().any(|success| *success) && conclusive.iter().any(|success| !success) {
        return SeriesChange::Flaky;
    }
    SeriesChange::Stable
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JsonLines, RunDir, RunEventKind, fixtures};

    /// A run of one case on a patch version of 1.32.
    fn recorded(backend: BackendName, patch: u32, verdict: Verdict) -> RecordedRun {
        let kubelet = format!("v1.32.{patch}");
        let mut started = fixtures::run_started(&[&kubelet], &["a"]);
        let RunEventKind::RunStarted { backend: of_run, .. } = &mut started else {
            unreachable!("it started")
        };
        *of_run = backend;
        let events = [started, fixtures::case_ended("a", &kubelet, 1, verdict, "why")];
        let events = events.map(|kind| fixtures::event(f64::from(patch), kind));
        let dir = tempfile::tempdir().unwrap();
        let mut report = JsonLines::create(&RunDir::at(dir.path()).unwrap()).unwrap();
        fixtures::deliver(&mut report, &events);
        RecordedRun::read(dir.path()).unwrap()
    }

    /// Runs of one case, one for each verdict, with one patch version more in each.
    fn history(verdicts: &[Verdict], recent: usize) -> History {
        let runs: Vec<RecordedRun> = (0..)
            .zip(verdicts)
            .map(|(patch, verdict)| recorded(BackendName::Kind, patch, *verdict))
            .collect();
        History::new(&runs, Some(recent))
    }

    /// A nightly job has artifacts of the model, which always passes, and of kind.
    #[test]
    fn backends_have_series_and_periods_of_their_own() {
        use Verdict::{Failed, Passed};
        let on_kind = [Passed, Passed, Passed, Failed, Failed, Failed];
        let runs: Vec<RecordedRun> = (0..)
            .zip(on_kind)
            .flat_map(|(night, verdict)| {
                [
                    recorded(BackendName::Embedded, 2 * night, Passed),
                    recorded(BackendName::Kind, 2 * night + 1, verdict),
                ]
            })
            .collect();
        let history = History::new(&runs, None);
        let [model, kind] = &history.series[..] else { panic!("{history:?}") };
        assert_eq!(
            (model.change, history.kubelet(model)),
            (SeriesChange::Stable, "v1.32, embedded".to_owned())
        );
        assert!(matches!(kind.change, SeriesChange::Regressed(p) if (p - 0.05).abs() < 1e-9), "{kind:?}");
        assert_eq!(history.kubelet(kind), "v1.32, kind");
    }

    #[test]
    fn changes_of_a_case() {
        use Verdict::{Error, Failed, Flaky, Inconclusive, Passed, Reproduced};
        let close = |a: f64, b: f64| (a - b).abs() < 1e-4;
        for (verdicts, recent, is_expected) in [
            (
                &[Passed, Passed, Reproduced][..],
                1,
                &(|change| change == SeriesChange::Stable) as &dyn Fn(_) -> _,
            ),
            (&[Failed, Failed], 1, &|change| change == SeriesChange::Stable),
            (&[Passed, Error, Inconclusive], 1, &|change| change == SeriesChange::Stable),
            (&[Passed, Passed, Failed], 1, &|change| change == SeriesChange::NewlyFailing(1)),
            (&[Passed, Failed, Inconclusive, Failed], 1, &|change| change == SeriesChange::NewlyFailing(2)),
            (&[Passed, Failed, Passed, Failed], 1, &|change| change == SeriesChange::Flaky),
            (&[Passed, Flaky], 1, &|change| change == SeriesChange::Flaky),
            (
                &[Passed, Passed, Passed, Passed, Failed, Failed, Failed],
                3,
                &|change| matches!(change, SeriesChange::Regressed(p) if close(p, 1.0 / 35.0)),
            ),
            (
                &[Failed, Failed, Failed, Passed, Passed, Passed, Passed],
                4,
                &|change| matches!(change, SeriesChange::Improved(p) if close(p, 1.0 / 35.0)),
            ),
        ] {
            let history = history(verdicts, recent);
            assert_eq!((history.series.len(), history.recent), (1, recent), "{history:?}");
            let change = history.series[0].change;
            assert!(is_expected(change), "{verdicts:?}: {change:?}");
        }
    }

    #[test]
    fn patch_versions_of_a_minor_share_a_series() {
        let history = history(&[Verdict::Passed, Verdict::Failed, Verdict::Error], 10);
        let [series] = &history.series[..] else { panic!("{history:?}") };
        assert_eq!((series.kubelet.as_str(), series.pass_rate), ("v1.32", Some(0.5)));
        let kubelets: Vec<&str> = series.outcomes.iter().map(|outcome| outcome.kubelet.as_str()).collect();
        assert_eq!(kubelets, ["v1.32.0", "v1.32.1", "v1.32.2"]);
    }
}
