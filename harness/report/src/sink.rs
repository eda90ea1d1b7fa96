//! Delivery of events: one thread passes every event to each report in turn.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::exit_code::{self, RunConditions, exit_code};
use crate::redact::redact_event;
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::RunState;

/// Time without an event after which reports get a tick.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// An output made from the events of a run.
///
/// A trait rather than an enum: `bench` and `verify` add reports of their own.
pub trait Report: Send {
    /// Name for error messages: `junit`, `terminal`.
    fn name(&self) -> &'static str;

    /// Handles one event; `run` already includes it. A report that returned an error still gets
    /// the following events.
    ///
    /// # Errors
    /// The output could not be written.
    fn on_event(&mut self, _event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        Ok(())
    }

    /// Handles the passing of time without an event.
    ///
    /// # Errors
    /// The output could not be written.
    fn on_tick(&mut self, _now: Timestamp, _run: &RunState) -> Result<(), ReportError> {
        Ok(())
    }

    /// Completes the output. The last event is usually [`RunEventKind::RunEnded`].
    ///
    /// # Errors
    /// The output could not be written.
    fn finish(self: Box<Self>, _run: &RunState) -> Result<(), ReportError> {
        Ok(())
    }
}

/// A report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory could not be written.
    #[error("failed to write {}: {source}\nhelp: free disk space, or choose another directory with --output-dir", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file or directory of another run could not be read.
    #[error("failed to read {}: {source}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The output stream of the report (standard output, or the build log) could not be written.
    #[error("failed to write report: {0}")]
    Output(#[from] io::Error),
    /// The directory already contains a run.
    #[error("failed to create run directory {}: it already contains a run (found {found})\nhelp: choose another --output-dir, or move the directory away", .dir.display())]
    Taken {
        /// The directory.
        dir: PathBuf,
        /// The file that was found in it.
        found: &'static str,
    },
    /// A value could not be serialized.
    #[error("failed to serialize {what}: {reason}\nhelp: this is a bug in evictlab, please report it")]
    Form {
        /// The value.
        what: &'static str,
        /// The error of the serializer.
        reason: String,
    },
    /// An existing baseline could not be read.
    #[error("failed to update baseline: {0}")]
    Baseline(#[from] crate::baseline::BaselineError),
    /// The report panicked and gets no further events.
    #[error("failed to write report: it panicked: {0}\nhelp: this is a bug in evictlab, please report it")]
    Panicked(String),
}

/// A report that is incomplete.
#[derive(Debug, thiserror::Error)]
#[error("failed to complete report {report}: {}", with_more(.first, *.more))]
pub struct ReportFailure {
    /// Name of the report.
    pub report: &'static str,
    /// Its first error.
    pub first: ReportError,
    /// Number of later errors.
    pub more: usize,
}

/// Returns the text of an error with the number of later ones, before its help.
fn with_more(first: &ReportError, more: usize) -> String {
    let text = first.to_string();
    let end = text.find("\nhelp: ").unwrap_or(text.len());
    match more {
        0 => text,
        1 => format!("{} (and 1 more error){}", &text[..end], &text[end..]),
        more => format!("{} (and {more} more errors){}", &text[..end], &text[end..]),
    }
}

/// Maximum number of events that wait for the reports.
const MAX_WAITING_EVENTS: usize = 1000;

/// Sends events to the reports. Cheap to clone; never fails. If the reports are slower than the
/// run, as on a slow disk, the run waits for them: a queue without a limit would hold the evidence
/// of any number of cases. A terminal that is not read does not block the reports.
#[derive(Clone, Debug)]
pub struct EventSender {
    sender: SyncSender<Message>,
    clock: Clock,
}

#[derive(Debug)]
enum Message {
    Event(Box<RunEvent>),
    Stop(Timestamp),
}

impl EventSender {
    /// Sends an event, stamped with the current time.
    pub fn send(&self, kind: RunEventKind) {
        let event = RunEvent { at: self.now(), kind };
        // The receiver disappears only after the reports finished; later events have no reader.
        let _ = self.sender.send(Message::Event(Box::new(event)));
    }

    /// The current time of the run.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The reports of a run. If dropped without [`Reports::finish`], as by a panic, finishes them.
#[derive(Debug)]
pub struct Reports {
    events: EventSender,
    thread: Option<JoinHandle<Finished>>,
}

/// The result of a run after its reports finished.
#[derive(Debug)]
pub struct Finished {
    /// Exit status for the command, see [`exit_code`](mod@super::exit_code).
    pub exit_code: u8,
    /// Incomplete reports, for standard error.
    pub failures: Vec<ReportFailure>,
}

impl Reports {
    /// Starts the thread that passes events to `reports`, in this order. `clock` stamps the events.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(reports: Vec<Box<dyn Report>>, clock: Clock) -> io::Result<Self> {
        let (sender, receiver) = mpsc::sync_channel(MAX_WAITING_EVENTS);
        let thread = thread::Builder::new()
            .name("reports".to_owned())
            .spawn(move || dispatch(&receiver, reports, clock))?;
        Ok(Self { events: EventSender { sender, clock }, thread: Some(thread) })
    }

    /// A sender of events.
    pub fn events(&self) -> EventSender {
        self.events.clone()
    }

    /// Ends the run: sends [`RunEventKind::RunEnded`] with the exit status that follows from the
    /// events, and waits until all reports are complete. Clones of [`EventSender`] may outlive it.
    pub fn finish(mut self) -> Finished {
        self.stop().unwrap_or_else(|| Finished { exit_code: exit_code::INFRASTRUCTURE, failures: vec![] })
    }

    fn stop(&mut self) -> Option<Finished> {
        let _ = self.events.sender.send(Message::Stop(self.events.now()));
        self.thread.take()?.join().ok()
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A report and its failure so far. `report` is `None` after a panic or a closed pipe.
struct ReporterSlot {
    name: &'static str,
    report: Option<Box<dyn Report>>,
    failure: Option<ReportFailure>,
}

impl ReporterSlot {
    fn new(report: Box<dyn Report>) -> Self {
        Self { name: report.name(), report: Some(report), failure: None }
    }

    fn call(&mut self, act: impl FnOnce(&mut dyn Report) -> Result<(), ReportError>) {
        let Some(report) = &mut self.report else { return };
        match catch_unwind(AssertUnwindSafe(|| act(&mut **report))) {
            Ok(Ok(())) => {}
            // The reader closed the pipe (`| head`): not a failure, and nothing more to write.
            Ok(Err(ReportError::Output(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.report = None;
            }
            Ok(Err(error)) => self.record_failure(error),
            Err(panic) => {
                self.report = None;
                self.record_failure(panic_error(&*panic));
            }
        }
    }

    fn finish(mut self, run: &RunState) -> Option<ReportFailure> {
        if let Some(report) = self.report.take() {
            match catch_unwind(AssertUnwindSafe(|| report.finish(run))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.record_failure(error),
                Err(panic) => self.record_failure(panic_error(&*panic)),
            }
        }
        self.failure
    }

    fn record_failure(&mut self, error: ReportError) {
        match &mut self.failure {
            Some(failure) => failure.more += 1,
            None => self.failure = Some(ReportFailure { report: self.name, first: error, more: 0 }),
        }
    }
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> ReportError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown panic");
    ReportError::Panicked(text.to_owned())
}

fn dispatch(receiver: &Receiver<Message>, reports: Vec<Box<dyn Report>>, clock: Clock) -> Finished {
    let mut slots: Vec<ReporterSlot> = reports.into_iter().map(ReporterSlot::new).collect();
    let mut state = RunState::default();
    let mut is_failure_reported = false;
    let mut last = clock.origin();
    let stopped = loop {
        match receiver.recv_timeout(TICK_INTERVAL) {
            Ok(Message::Event(mut event)) => {
                last = event.at;
                redact_event(&mut event.kind);
                deliver(&mut slots, &mut state, &event);
                if !is_failure_reported && let Some(error) = unwritten_file(&slots) {
                    is_failure_reported = true;
                    let mut kind = RunEventKind::ReportFailed { error };
                    redact_event(&mut kind);
                    deliver(&mut slots, &mut state, &RunEvent { at: last, kind });
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                // Only the model's own thread can read the model's time.
                let now = if clock.is_model() { last } else { clock.now() };
                slots.iter_mut().for_each(|slot| slot.call(|report| report.on_tick(now, &state)));
            }
            Ok(Message::Stop(at)) => break at,
            Err(RecvTimeoutError::Disconnected) => break last,
        }
    };
    finish_reports(state, slots, stopped)
}

/// Passes recorded events, without the end of a run, to `reports`, and completes them at the time
/// of the last event.
pub(crate) fn replay(events: &[RunEvent], reports: Vec<Box<dyn Report>>) -> Finished {
    let mut slots: Vec<ReporterSlot> = reports.into_iter().map(ReporterSlot::new).collect();
    let mut state = RunState::default();
    for event in events {
        let mut event = event.clone();
        redact_event(&mut event.kind);
        deliver(&mut slots, &mut state, &event);
    }
    let last = events.iter().map(|event| event.at).max().unwrap_or_default();
    finish_reports(state, slots, last)
}

/// Returns the error of the first report that could not write a file, with the consequence for the
/// run.
fn unwritten_file(slots: &[ReporterSlot]) -> Option<String> {
    slots.iter().filter_map(|slot| slot.failure.as_ref()).find_map(|failure| match &failure.first {
        ReportError::Write { path, source } => Some(format!(
            "failed to write {}: {source}; the run continues, but some of its evidence is lost\n\
             help: free disk space now, or choose another directory with --output-dir",
            path.display(),
        )),
        _ => None,
    })
}

fn deliver(slots: &mut [ReporterSlot], state: &mut RunState, event: &RunEvent) {
    state.apply(event);
    slots.iter_mut().for_each(|slot| slot.call(|report| report.on_event(event, state)));
}

fn finish_reports(mut state: RunState, mut slots: Vec<ReporterSlot>, at: Timestamp) -> Finished {
    let status = |state: &RunState, report_failed: bool| {
        let conditions = RunConditions {
            changed: state.has_changed(),
            infrastructure_failed: state.infrastructure_failed() || report_failed,
            interrupted: state.interrupted > 0,
        };
        exit_code(state.unexpected_verdicts(), conditions)
    };
    let code = status(&state, slots.iter().any(|slot| slot.failure.is_some()));
    if let Some(run) = &state.run {
        let seconds = at.duration_since(run.at).as_secs_f64();
        let event = RunEvent { at, kind: RunEventKind::RunEnded { exit_code: code, seconds } };
        deliver(&mut slots, &mut state, &event);
    }
    let failures: Vec<_> = slots.into_iter().filter_map(|slot| slot.finish(&state)).collect();
    Finished { exit_code: status(&state, !failures.is_empty()), failures }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::fixtures;
    use evictlab_judge::Verdict;

    /// Records its events; `second` runs at the second event.
    struct TestReport {
        seen: Arc<Mutex<Vec<String>>>,
        second: fn() -> Result<(), ReportError>,
    }

    impl TestReport {
        fn pair(second: fn() -> Result<(), ReportError>) -> (Box<dyn Report>, Arc<Mutex<Vec<String>>>) {
            let seen = Arc::default();
            (Box::new(Self { seen: Arc::clone(&seen), second }), seen)
        }
    }

    impl Report for TestReport {
        fn name(&self) -> &'static str {
            "test"
        }

        fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
            let kind = match &event.kind {
                RunEventKind::RunEnded { exit_code, .. } => format!("ended {exit_code}"),
                RunEventKind::CaseEnded { id, .. } => id.case.clone(),
                RunEventKind::ReportFailed { error } => error.clone(),
                _ => "other".to_owned(),
            };
            let mut seen = self.seen.lock().unwrap();
            seen.push(kind);
            let nth = seen.len();
            drop(seen);
            if nth == 2 { (self.second)() } else { Ok(()) }
        }

        fn finish(self: Box<Self>, _run: &RunState) -> Result<(), ReportError> {
            self.seen.lock().unwrap().push("finished".to_owned());
            Ok(())
        }
    }

    fn started(cases: &[&str]) -> RunEventKind {
        fixtures::run_started(&["v1.32.13"], cases)
    }

    fn ended(case: &str, verdict: Verdict) -> RunEventKind {
        fixtures::case_ended(case, "v1.32.13", 1, verdict, "why")
    }

    #[test]
    fn closed_pipe_is_not_a_failure() {
        let gone = || Err(ReportError::Output(io::ErrorKind::BrokenPipe.into()));
        let (leaves, left) = TestReport::pair(gone);
        let reports = Reports::start(vec![leaves], Clock::wall()).unwrap();
        let events = reports.events();
        events.send(started(&["a"]));
        events.send(ended("a", Verdict::Passed));
        let finished = reports.finish();
        assert!(finished.failures.is_empty() && finished.exit_code == exit_code::SUCCESS, "{finished:?}");
        assert_eq!(*left.lock().unwrap(), ["other", "a"], "no events after the pipe was closed");
    }

    #[test]
    fn failing_reports_do_not_affect_others() {
        let disk_full = || Err(ReportError::Output(io::Error::other("disk full")));
        let (fails, failing) = TestReport::pair(disk_full);
        let (panics, panicking) = TestReport::pair(|| panic!("at the disco"));
        let (works, working) = TestReport::pair(|| Ok(()));
        let reports = Reports::start(vec![fails, panics, works], Clock::wall()).unwrap();
        let events = reports.events();
        events.send(started(&["a", "b"]));
        std::thread::scope(|scope| {
            scope.spawn(|| events.clone().send(ended("a", Verdict::Passed)));
        });
        events.send(ended("b", Verdict::Passed));
        let finished = reports.finish();

        let whole = ["other", "a", "b", "ended 4", "finished"];
        assert_eq!(*working.lock().unwrap(), whole);
        assert_eq!(*failing.lock().unwrap(), whole);
        assert_eq!(*panicking.lock().unwrap(), whole[..2]);
        let failures: Vec<_> = finished.failures.iter().map(ToString::to_string).collect();
        assert_eq!(failures[0], "failed to complete report test: failed to write report: disk full");
        assert!(failures[1].contains("at the disco"), "{failures:?}");
        assert_eq!(finished.exit_code, exit_code::INFRASTRUCTURE);
        events.send(RunEventKind::Interrupted { stage: 2 });
    }

    #[test]
    fn an_unwritten_file_is_reported_once_during_the_run() {
        let disk_full = || {
            let source = io::ErrorKind::StorageFull.into();
            Err(ReportError::Write { path: "/results/case/facts.yaml".into(), source })
        };
        let (fails, _) = TestReport::pair(disk_full);
        let (too, _) = TestReport::pair(disk_full);
        let (works, working) = TestReport::pair(|| Ok(()));
        let reports = Reports::start(vec![works, fails, too], Clock::wall()).unwrap();
        for kind in [started(&["a", "b"]), ended("a", Verdict::Passed), ended("b", Verdict::Passed)] {
            reports.events().send(kind);
        }
        let finished = reports.finish();
        assert_eq!((finished.failures.len(), finished.exit_code), (2, exit_code::INFRASTRUCTURE));
        let seen = working.lock().unwrap().clone();
        let notice = "failed to write /results/case/facts.yaml: no storage space; the run continues, but \
                      some of its evidence is lost\nhelp: free disk space now, or choose another directory \
                      with --output-dir";
        assert_eq!(seen, ["other", "a", notice, "b", "ended 4", "finished"]);
    }

    #[test]
    fn exit_status_follows_from_the_events() {
        let step = RunEventKind::ClusterFailed {
            cluster: "c".to_owned(),
            seconds: 1.0,
            error: "no image".to_owned(),
            cause: None,
        };
        let cluster =
            RunEventKind::ClusterStarted { cluster: "c".to_owned(), kubelets: vec![], reused: false };
        for (events, code) in [
            (vec![started(&["a"]), ended("a", Verdict::Fixed)], exit_code::SUCCESS),
            (vec![started(&["a"]), ended("a", Verdict::Inconclusive)], exit_code::INCONCLUSIVE),
            (vec![started(&["a", "b"]), ended("a", Verdict::Passed)], exit_code::INFRASTRUCTURE),
            (vec![started(&[]), cluster, step], exit_code::INFRASTRUCTURE),
            (vec![started(&["a"]), RunEventKind::Interrupted { stage: 1 }], exit_code::INTERRUPTED),
        ] {
            let reports = Reports::start(vec![], Clock::wall()).unwrap();
            events.iter().for_each(|kind| reports.events().send(kind.clone()));
            assert_eq!(reports.finish().exit_code, code, "{events:?}");
        }
    }

    #[test]
    fn a_slow_report_does_not_let_events_pile_up() {
        let (works, seen) = TestReport::pair(|| Ok(()));
        let reports = Reports::start(vec![works], Clock::wall()).unwrap();
        let blocked = seen.lock().unwrap();
        let message = || {
            let event = RunEvent { at: reports.events.now(), kind: ended("a", Verdict::Passed) };
            Message::Event(Box::new(event))
        };
        // The report has taken one event, and waits.
        let waiting =
            (0..2 * MAX_WAITING_EVENTS).take_while(|_| reports.events.sender.try_send(message()).is_ok());
        assert!(waiting.count() <= MAX_WAITING_EVENTS + 1);
        drop(blocked);
        reports.events().send(ended("b", Verdict::Passed));
        reports.finish();
        assert!(seen.lock().unwrap().contains(&"b".to_owned()));
    }

    #[test]
    fn dropped_reports_are_finished() {
        let (works, seen) = TestReport::pair(|| Ok(()));
        let reports = Reports::start(vec![works], Clock::wall()).unwrap();
        reports.events().send(started(&["a"]));
        drop(reports);
        assert_eq!(*seen.lock().unwrap(), ["other", "ended 4", "finished"]);
    }
}
