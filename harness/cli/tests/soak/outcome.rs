//! Verdicts of the runs of a soak: as in the baseline, or none.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evictlab_judge::{CaseResult, Verdict};
use evictlab_report::{CaseId, RunEvent, RunEventKind};
use rustix::process::Signal;
use serde_json::Value;

use crate::plan::{Action, Command, FAULT_EFFECT, ServerFault};
use crate::served::Ended;

/// Counts of a soak.
#[derive(Debug, Default)]
pub struct Counts {
    runs: usize,
    interrupts: usize,
    kills: usize,
    collections: usize,
    verdicts: BTreeMap<String, usize>,
    /// Inconclusive cases that no fault or signal explains.
    unexplained: Vec<String>,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, interrupts, kills, collections, verdicts, unexplained } = self;
        write!(
            f,
            "{runs} runs, {interrupts} interrupts, {kills} kills, {collections} collections; verdicts: "
        )?;
        let verdicts: Vec<String> =
            verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        write!(f, "{}; {} inconclusive without a cause", verdicts.join(", "), unexplained.len())
    }
}

/// Expected verdicts by case and kubelet minor.
pub struct Baseline(Value);

impl Baseline {
    pub fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/baseline.json");
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    fn verdict(&self, id: &CaseId) -> Option<&str> {
        let minor: Vec<&str> = id.kubelet.split('.').take(2).collect();
        self.0[format!("{}/{}", id.suite, id.case)][minor.join(".")].as_str()
    }
}

impl Counts {
    /// Counts an action that ended.
    ///
    /// # Panics
    /// It has a wrong exit status, or a case a wrong verdict.
    pub fn add(
        &mut self,
        action: &Action,
        ended: &Ended,
        baseline: &Baseline,
        faults: &[(Instant, &ServerFault)],
    ) {
        match ended.signal {
            Some(Signal::KILL) => self.kills += 1,
            Some(_) => self.interrupts += 1,
            None => {}
        }
        let disturbed = ended.signal.is_some() || is_limited(action) || has_fault(action, ended, faults);
        match action.command {
            Command::Gc { .. } => self.collections += 1,
            _ => self.runs += 1,
        }
        assert_status(action, ended, disturbed);
        for (id, result) in results(ended) {
            let verdict = result.verdict;
            *self.verdicts.entry(verdict.to_string()).or_default() += 1;
            let expected = baseline.verdict(&id);
            let is_flaky_pass = verdict == Verdict::Flaky && expected == Some("passed");
            let CaseId { suite, case, kubelet, .. } = &id;
            let context =
                format!("{suite}/{case} on {kubelet}: {verdict}, {}\n{action}\n{}", result.why, ended.output);
            match verdict {
                Verdict::Skipped => {}
                Verdict::Error | Verdict::Inconclusive if disturbed => {}
                Verdict::Inconclusive => self.unexplained.push(context),
                verdict => assert!(
                    expected == Some(verdict.to_string().as_str()) || is_flaky_pass,
                    "wrong verdict: {context}"
                ),
            }
        }
    }

    /// Prints the cases that were inconclusive although nothing disturbed them: a busy machine.
    pub fn print_unexplained(&self) {
        self.unexplained.iter().for_each(|context| println!("inconclusive without a cause: {context}"));
    }
}

/// A run at its time limit ends its cases in errors.
fn is_limited(action: &Action) -> bool {
    matches!(&action.command, Command::Existing(arguments) if arguments.iter().any(|word| word == "--timeout"))
}

fn has_fault(action: &Action, ended: &Ended, faults: &[(Instant, &ServerFault)]) -> bool {
    let (began, end) = ended.span;
    match &action.command {
        Command::Model(_, fault) => fault.is_some(),
        _ => faults.iter().any(|(at, _)| *at <= end && began <= *at + FAULT_EFFECT),
    }
}

/// A process ends by the signal, or with a documented exit status, which 101, a panic, is not.
fn assert_status(action: &Action, ended: &Ended, disturbed: bool) {
    let allowed: &[Option<i32>] = match (&action.command, ended.signal, disturbed) {
        (_, Some(Signal::KILL), _) => &[None, Some(0), Some(1), Some(3), Some(4), Some(130), Some(137)],
        // Before the handler was installed, a signal ends the process.
        (_, Some(_), _) => &[None, Some(0), Some(1), Some(3), Some(4), Some(130), Some(143), Some(129)],
        (Command::Gc { .. }, None, true) => &[Some(0), Some(4)],
        (Command::Gc { .. }, None, false) => &[Some(0)],
        (_, None, true) => &[Some(0), Some(1), Some(3), Some(4)],
        (_, None, false) => &[Some(0), Some(3)],
    };
    let code = ended.status.code();
    assert!(allowed.contains(&code), "{}: {action}\n{}", ended.status, ended.output);
}

fn results(ended: &Ended) -> Vec<(CaseId, Arc<CaseResult>)> {
    let events = fs::read_to_string(ended.run_dir.join("artifacts/events.jsonl")).unwrap_or_default();
    // A kill may cut the last line.
    let events = events.lines().filter_map(|line| serde_json::from_str::<RunEvent>(line).ok());
    let results = events.filter_map(|event| match event.kind {
        RunEventKind::CaseEnded { id, result, .. } => Some((id, result)),
        _ => None,
    });
    results.collect()
}

/// Returns the faults with their times.
pub fn timed(faults: &[ServerFault], started: Instant) -> Vec<(Instant, &ServerFault)> {
    faults.iter().map(|fault| (started + fault.start - Duration::from_secs(1), fault)).collect()
}
