//! Measures durations from the events of a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use evictlab_judge::Phase;
use evictlab_report::text::first_line;
use evictlab_report::{CaseId, Report, ReportError, RunEvent, RunEventKind, RunState};

/// Durations of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunTimes {
    /// From the start of the run until every case of the first attempt ended; `None` if a case did
    /// not evict its pods.
    pub first_attempt_seconds: Option<f64>,
    /// From the creation of the pods to the verdict, for each case that evicted its pods.
    pub verdict_seconds: Vec<f64>,
    /// Time in which at least one case was observed.
    pub observed_seconds: f64,
    /// CPU time of this process in that time; `None` if the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Cases that did not evict their pods, with the reason.
    pub invalid: Vec<String>,
}

/// Measures the times of a run.
pub(crate) struct RunTimer {
    times: Arc<Mutex<RunTimes>>,
    /// Returns the CPU time of this process in seconds.
    cpu_clock: fn() -> Option<f64>,
    started: Option<Timestamp>,
    /// Starts of the observations of cases that are observed now.
    observation_starts: HashMap<CaseId, Timestamp>,
    /// Time since which at least one case is observed, and the CPU time at that point.
    observed_since: Option<(Timestamp, Option<f64>)>,
    /// Durations of the observations of cases that have not ended.
    observation_seconds: HashMap<CaseId, f64>,
}

impl RunTimer {
    /// Returns a timer and its times, which are complete after the run.
    pub(crate) fn new() -> (Self, Arc<Mutex<RunTimes>>) {
        Self::with_cpu_clock(process_cpu_seconds)
    }

    fn with_cpu_clock(cpu_clock: fn() -> Option<f64>) -> (Self, Arc<Mutex<RunTimes>>) {
        let times = Arc::new(Mutex::new(RunTimes { cpu_seconds: Some(0.0), ..RunTimes::default() }));
        let timer = Self {
            times: Arc::clone(&times),
            cpu_clock,
            started: None,
            observation_starts: HashMap::new(),
            observed_since: None,
            observation_seconds: HashMap::new(),
        };
        (timer, times)
    }

    fn update(&self, update: impl FnOnce(&mut RunTimes)) {
        update(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Starts the observation of a case: the step precedes the creation of the pods.
    fn begin(&mut self, id: &CaseId, at: Timestamp) {
        self.observation_starts.entry(id.clone()).or_insert(at);
        let cpu_clock = self.cpu_clock;
        self.observed_since.get_or_insert_with(|| (at, cpu_clock()));
    }

    /// Ends the observation of a case, with or without a verdict.
    fn end(&mut self, id: &CaseId, at: Timestamp) {
        let Some(began) = self.observation_starts.remove(id) else { return };
        self.observation_seconds.insert(id.clone(), seconds(began, at));
        if let Some((since, cpu_before)) = self.observed_since.take_if(|_| self.observation_starts.is_empty())
        {
            let used = (self.cpu_clock)().zip(cpu_before).map(|(now, before)| now - before);
            self.update(|times| {
                times.observed_seconds += seconds(since, at);
                times.cpu_seconds = times.cpu_seconds.zip(used).map(|(sum, used)| sum + used);
            });
        }
    }
}

impl Report for RunTimer {
    fn name(&self) -> &'static str {
        "bench"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        match &event.kind {
            RunEventKind::RunStarted { .. } => self.started = Some(event.at),
            RunEventKind::CaseStep { id, phase: Phase::CreatePods, .. } => self.begin(id, event.at),
            RunEventKind::CaseStep { id, phase: Phase::Recover, .. } => self.end(id, event.at),
            RunEventKind::CaseEnded { id, evidence, result, .. } => {
                self.end(id, event.at);
                let evicted = evidence.as_ref().is_some_and(|seen| seen.seconds_to_outcome.is_some());
                let verdict = self.observation_seconds.remove(id).filter(|_| evicted);
                let total = self.started.map(|started| seconds(started, event.at));
                self.update(|times| match verdict {
                    Some(verdict) => {
                        times.verdict_seconds.push(verdict);
                        if id.attempt == 1 {
                            times.first_attempt_seconds = total;
                        }
                    }
                    None => times.invalid.push(format!(
                        "{} on {}: {}",
                        id.case,
                        id.kubelet,
                        first_line(&result.why)
                    )),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _run: &RunState) -> Result<(), ReportError> {
        Ok(())
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// Returns the CPU time of this process in seconds: fields 14 and 15 of `/proc/self/stat`, in units
/// of 1/100 s (`USER_HZ`).
fn process_cpu_seconds() -> Option<f64> {
    cpu_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks as f64 / 100.0)
}

fn cpu_ticks(stat: &str) -> Option<u64> {
    // The second field, the command name in parentheses, may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use evictlab_evidence::Observations;
    use evictlab_judge::{CaseResult, Verdict};
    use evictlab_report::{BackendName, CaseInfo, FlakyResult};

    fn id(kubelet: &str, attempt: u32) -> CaseId {
        CaseId { suite: "s".to_owned(), case: "c".to_owned(), kubelet: kubelet.to_owned(), attempt }
    }

    fn step(kubelet: &str, attempt: u32, phase: Phase) -> RunEventKind {
        RunEventKind::CaseStep { id: id(kubelet, attempt), phase, text: String::new() }
    }

    fn ended(kubelet: &str, attempt: u32, evicted: bool) -> RunEventKind {
        let seen = Observations { seconds_to_outcome: evicted.then_some(1.0), ..Observations::default() };
        let result = CaseResult::without_evidence(Verdict::Passed, "why\nmore");
        RunEventKind::CaseEnded {
            id: id(kubelet, attempt),
            node: None,
            seconds: 1.0,
            result: Arc::new(result),
            evidence: Some(Arc::new(seen)),
        }
    }

    #[test]
    fn measures_times_from_events() {
        let (mut timer, times) = RunTimer::with_cpu_clock(|| Some(2.0));
        let started = RunEventKind::RunStarted {
            run_id: String::new(),
            evictlab: String::new(),
            backend: BackendName::Kind,
            model: None,
            kubelets: vec![],
            kubelet_args: BTreeMap::new(),
            cases: Vec::<CaseInfo>::new(),
            repeat: Some(1),
            flaky_result: FlakyResult::Pass,
            real_start: None,
            shard: None,
        };
        let story = [
            (0, started),
            (10, step("a", 1, Phase::CreatePods)),
            (12, step("b", 1, Phase::CreatePods)),
            (18, step("a", 1, Phase::Recover)),
            (20, ended("a", 1, true)),
            (24, step("b", 1, Phase::Recover)),
            (25, ended("b", 1, true)),
            // No case is observed between the attempts.
            (30, step("a", 2, Phase::AwaitNode)),
            (40, step("a", 2, Phase::CreatePods)),
            (45, ended("a", 2, false)),
        ];
        for (at, kind) in story {
            let at = Timestamp::from_second(1_800_000_000 + at).unwrap();
            timer.on_event(&RunEvent { at, kind }, &RunState::default()).unwrap();
        }
        let expected = RunTimes {
            first_attempt_seconds: Some(25.0),
            verdict_seconds: vec![8.0, 12.0],
            observed_seconds: 14.0 + 5.0,
            cpu_seconds: Some(0.0),
            invalid: vec!["c on a: why".to_owned()],
        };
        assert_eq!(*times.lock().unwrap(), expected);
    }

    #[test]
    fn reads_cpu_time_after_any_command_name() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 500 0 0 0 37 5 0 0 20 0 3 0 100 0 0";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("42 (short) S 1"), None);
    }
}
