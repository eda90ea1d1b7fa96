//! Times out of the stream of a run's events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::judge::Phase;
use crate::report::{CaseId, Report, ReportError, RunEvent, What};

/// What was timed, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The run's start until every case of the first attempt had ended; none: not all evicted what they should.
    pub first_attempt: Option<f64>,
    /// Pod created until verdict, of each case that evicted what it should.
    pub verdicts: Vec<f64>,
    /// How long any case was watched.
    pub watched: f64,
    /// This process's CPU time in that; none where the system does not tell.
    pub cpu: Option<f64>,
    /// The cases that did not evict what they should, and why.
    pub unsound: Vec<String>,
}

/// Keeps the times of a run while it runs.
pub struct Stopwatch {
    times: Arc<Mutex<Times>>,
    cpu: fn() -> Option<f64>,
    started: Option<Timestamp>,
    watching: HashMap<CaseId, Timestamp>,
    /// Since when any case is watched, and the CPU time then.
    since: Option<(Timestamp, Option<f64>)>,
    ended: HashMap<CaseId, f64>,
}

impl Stopwatch {
    /// A stopwatch, and where to read it when the run is over.
    pub fn new() -> (Self, Arc<Mutex<Times>>) {
        Self::with(own_cpu)
    }

    fn with(cpu: fn() -> Option<f64>) -> (Self, Arc<Mutex<Times>>) {
        let times = Arc::new(Mutex::new(Times { cpu: Some(0.0), ..Times::default() }));
        let watch = Self {
            times: Arc::clone(&times),
            cpu,
            started: None,
            watching: HashMap::new(),
            since: None,
            ended: HashMap::new(),
        };
        (watch, times)
    }

    fn note(&self, note: impl FnOnce(&mut Times)) {
        note(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A case creates its pods: the step is told right before.
    fn begin(&mut self, id: &CaseId, at: Timestamp) {
        self.watching.entry(id.clone()).or_insert(at);
        let cpu = self.cpu;
        self.since.get_or_insert_with(|| (at, cpu()));
    }

    /// A case has its verdict, or ended without.
    fn end(&mut self, id: &CaseId, at: Timestamp) {
        let Some(began) = self.watching.remove(id) else { return };
        self.ended.insert(id.clone(), seconds(began, at));
        if let Some((since, cpu)) = self.since.take_if(|_| self.watching.is_empty()) {
            let used = (self.cpu)().zip(cpu).map(|(now, then)| now - then);
            self.note(|times| {
                times.watched += seconds(since, at);
                times.cpu = times.cpu.zip(used).map(|(sum, used)| sum + used);
            });
        }
    }
}

impl Report for Stopwatch {
    fn name(&self) -> &'static str {
        "stopwatch"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        match &event.what {
            What::RunStarted { .. } => self.started = Some(event.at),
            What::CaseStep { id, phase: Phase::Stage, .. } => self.begin(id, event.at),
            What::CaseStep { id, phase: Phase::Reset, .. } => self.end(id, event.at),
            What::CaseEnded { id, evidence, judgement, .. } => {
                self.end(id, event.at);
                let evicted = evidence.as_ref().is_some_and(|seen| seen.seconds_to_outcome.is_some());
                let verdict = self.ended.remove(id).filter(|_| evicted);
                let whole = self.started.map(|started| seconds(started, event.at));
                self.note(|times| match verdict {
                    Some(verdict) => {
                        times.verdicts.push(verdict);
                        if id.attempt == 1 {
                            times.first_attempt = whole;
                        }
                    }
                    None => times.unsound.push(format!(
                        "{} on {}: {}",
                        id.case,
                        id.kubelet,
                        one_line(&judgement.why)
                    )),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}

fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// The CPU time of this process so far, in seconds: fields 14 and 15 of `/proc/self/stat`, in hundredths (`USER_HZ`).
fn own_cpu() -> Option<f64> {
    ticks(&std::fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks as f64 / 100.0)
}

fn ticks(stat: &str) -> Option<u64> {
    // The second field, the command in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Judgement, Verdict};
    use crate::observe::Observations;
    use crate::report::Planned;

    fn id(kubelet: &str, attempt: u32) -> CaseId {
        CaseId { suite: "s".to_owned(), case: "c".to_owned(), kubelet: kubelet.to_owned(), attempt }
    }

    fn step(kubelet: &str, attempt: u32, phase: Phase) -> What {
        What::CaseStep { id: id(kubelet, attempt), phase, text: String::new() }
    }

    fn ended(kubelet: &str, attempt: u32, evicted: bool) -> What {
        let seen = Observations { seconds_to_outcome: evicted.then_some(1.0), ..Observations::default() };
        let judgement = Judgement::without_evidence(Verdict::Passed, "why\nmore");
        What::CaseEnded {
            id: id(kubelet, attempt),
            node: None,
            seconds: 1.0,
            judgement: Arc::new(judgement),
            evidence: Some(Arc::new(seen)),
        }
    }

    #[test]
    fn times_are_taken_from_the_stream() {
        let (mut watch, times) = Stopwatch::with(|| Some(2.0));
        let started = What::RunStarted {
            run: String::new(),
            evictlab: String::new(),
            backend: String::new(),
            model: None,
            kubelets: vec![],
            cases: Vec::<Planned>::new(),
        };
        let story = [
            (0, started),
            (10, step("a", 1, Phase::Stage)),
            (12, step("b", 1, Phase::Stage)),
            (18, step("a", 1, Phase::Reset)),
            (20, ended("a", 1, true)),
            (24, step("b", 1, Phase::Reset)),
            (25, ended("b", 1, true)),
            // Nothing is watched between the attempts.
            (30, step("a", 2, Phase::Lease)),
            (40, step("a", 2, Phase::Stage)),
            (45, ended("a", 2, false)),
        ];
        for (at, what) in story {
            let at = Timestamp::from_second(1_800_000_000 + at).unwrap();
            watch.take(&RunEvent { at, what }).unwrap();
        }
        let expected = Times {
            first_attempt: Some(25.0),
            verdicts: vec![8.0, 12.0],
            watched: 14.0 + 5.0,
            cpu: Some(0.0),
            unsound: vec!["c on a: why".to_owned()],
        };
        assert_eq!(*times.lock().unwrap(), expected);
    }

    #[test]
    fn cpu_time_is_read_past_any_command() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 500 0 0 0 37 5 0 0 20 0 3 0 100 0 0";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("42 (short) S 1"), None);
    }
}
