//! From the run to its reports: one thread takes every event and hands it to each report in turn.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jiff::Timestamp;

use super::exit_code::{self, exit_code};
use super::ledger::Ledger;
use super::redact::redact_event;
use super::{RunEvent, What};
use crate::clock::Clock;

/// How often a live report may redraw while nothing happens.
const TICK: Duration = Duration::from_millis(500);

/// Something that is made from the stream of a run's events.
pub trait Report: Send {
    /// Its name, for errors about it: `junit`, `terminal`.
    fn name(&self) -> &'static str;

    /// Takes one event. A report that fails is given the next one all the same.
    ///
    /// # Errors
    /// What could not be written.
    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError>;

    /// Time went by without an event.
    ///
    /// # Errors
    /// What could not be written.
    fn tick(&mut self, _now: Timestamp) -> Result<(), ReportError> {
        Ok(())
    }

    /// The stream is over, usually by [`What::RunEnded`].
    ///
    /// # Errors
    /// What could not be written.
    fn finish(self: Box<Self>) -> Result<(), ReportError>;
}

/// A report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory.
    #[error("cannot write {}: {source}. Is the disk full, or the directory not yours? Choose another by --output-dir", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What the report writes to: standard output, or for the build log its file.
    #[error("cannot write what it has to say: {0}")]
    Output(#[from] io::Error),
    /// The directory of a run holds one already.
    #[error("{} holds a run already ({found} is there). Choose another --output-dir, or move it away", .dir.display())]
    Taken {
        /// The directory.
        dir: PathBuf,
        /// What was found there.
        found: &'static str,
    },
    /// Evidence that has no JSON or YAML form.
    #[error("cannot put {what} in writing: {reason}. This is a mistake in evictlab, please report it")]
    Form {
        /// What.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// The report panicked and was given up.
    #[error("the report gave up: {0}. This is a mistake in evictlab, please report it")]
    Panicked(String),
}

/// A report that is not complete.
#[derive(Debug, thiserror::Error)]
#[error("{report}: {first}{}", match .more { 0 => String::new(), more => format!(" (and {more} more errors)") })]
pub struct ReportFailure {
    /// The report's name.
    pub report: &'static str,
    /// Its first error.
    pub first: ReportError,
    /// How many followed.
    pub more: usize,
}

/// Where a run tells what happens. Cheap to clone; never blocks, never fails.
#[derive(Clone, Debug)]
pub struct Events {
    sender: Sender<Item>,
    clock: Clock,
}

#[derive(Debug)]
enum Item {
    Event(Box<RunEvent>),
    Stop(Timestamp),
}

impl Events {
    /// Tells all reports, with the time of now.
    pub fn send(&self, what: What) {
        let event = RunEvent { at: self.now(), what };
        // The receiver is gone only after the reports were finished: what comes later has no reader.
        let _ = self.sender.send(Item::Event(Box::new(event)));
    }

    /// The run's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The reports of a run. Dropped without [`Reports::finish`], as by a panic, it still finishes them.
#[derive(Debug)]
pub struct Reports {
    events: Events,
    thread: Option<JoinHandle<Finished>>,
}

/// How a run ended, after its reports.
#[derive(Debug)]
pub struct Finished {
    /// What the command shall exit with, see [`exit_code`](mod@super::exit_code).
    pub exit_code: u8,
    /// The reports that are not complete, for standard error.
    pub failures: Vec<ReportFailure>,
}

impl Reports {
    /// Starts the thread that feeds `reports`, which see each event in the order given, with its time by this clock.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(reports: Vec<Box<dyn Report>>, clock: Clock) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("reports".to_owned())
            .spawn(move || feed(&receiver, reports, clock))?;
        Ok(Self { events: Events { sender, clock }, thread: Some(thread) })
    }

    /// Where to tell what happens.
    pub fn events(&self) -> Events {
        self.events.clone()
    }

    /// Ends the run: the reports see [`What::RunEnded`] with the exit status that follows from the stream, and are
    /// completed. Waits for that; clones of [`Events`] may live on.
    pub fn finish(mut self) -> Finished {
        self.stop().unwrap_or_else(|| Finished { exit_code: exit_code::INFRASTRUCTURE, failures: vec![] })
    }

    fn stop(&mut self) -> Option<Finished> {
        let _ = self.events.sender.send(Item::Stop(self.events.now()));
        self.thread.take()?.join().ok()
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One report, with what went wrong with it so far. A report that panicked is gone.
struct Fed {
    name: &'static str,
    report: Option<Box<dyn Report>>,
    failure: Option<ReportFailure>,
}

impl Fed {
    fn new(report: Box<dyn Report>) -> Self {
        Self { name: report.name(), report: Some(report), failure: None }
    }

    fn with(&mut self, act: impl FnOnce(&mut dyn Report) -> Result<(), ReportError>) {
        let Some(report) = &mut self.report else { return };
        match catch_unwind(AssertUnwindSafe(|| act(&mut **report))) {
            Ok(Ok(())) => {}
            // Whoever read it has seen enough (`| head`): no failure, and nothing more to tell.
            Ok(Err(ReportError::Output(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.report = None;
            }
            Ok(Err(error)) => self.note(error),
            Err(panic) => {
                self.report = None;
                self.note(panicked(&*panic));
            }
        }
    }

    fn finish(mut self) -> Option<ReportFailure> {
        if let Some(report) = self.report.take() {
            match catch_unwind(AssertUnwindSafe(|| report.finish())) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.note(error),
                Err(panic) => self.note(panicked(&*panic)),
            }
        }
        self.failure
    }

    fn note(&mut self, error: ReportError) {
        match &mut self.failure {
            Some(failure) => failure.more += 1,
            None => self.failure = Some(ReportFailure { report: self.name, first: error, more: 0 }),
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ReportError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    ReportError::Panicked(text.to_owned())
}

fn feed(receiver: &Receiver<Item>, reports: Vec<Box<dyn Report>>, clock: Clock) -> Finished {
    let mut reports: Vec<Fed> = reports.into_iter().map(Fed::new).collect();
    let mut ledger = Ledger::default();
    let mut last = clock.origin();
    let stopped = loop {
        match receiver.recv_timeout(TICK) {
            Ok(Item::Event(mut event)) => {
                last = event.at;
                redact_event(&mut event.what);
                ledger.take(&event);
                reports.iter_mut().for_each(|fed| fed.with(|report| report.take(&event)));
            }
            Err(RecvTimeoutError::Timeout) => {
                // A model's time is known to its own thread alone.
                let now = if clock.is_model() { last } else { clock.now() };
                reports.iter_mut().for_each(|fed| fed.with(|report| report.tick(now)));
            }
            Ok(Item::Stop(at)) => break at,
            Err(RecvTimeoutError::Disconnected) => break last,
        }
    };
    end(&ledger, reports, stopped)
}

fn end(ledger: &Ledger, mut reports: Vec<Fed>, at: Timestamp) -> Finished {
    let interrupted = ledger.interrupted > 0;
    let changed = ledger.has_changed();
    let report_failed = reports.iter().any(|fed| fed.failure.is_some());
    let code =
        exit_code(ledger.telling(), changed, ledger.infrastructure_failed() || report_failed, interrupted);
    if let Some(run) = &ledger.run {
        let seconds = at.duration_since(run.at).as_secs_f64();
        let event = RunEvent { at, what: What::RunEnded { exit_code: code, seconds } };
        reports.iter_mut().for_each(|fed| fed.with(|report| report.take(&event)));
    }
    let failures: Vec<_> = reports.into_iter().filter_map(Fed::finish).collect();
    let infrastructure_failed = ledger.infrastructure_failed() || !failures.is_empty();
    Finished { exit_code: exit_code(ledger.telling(), changed, infrastructure_failed, interrupted), failures }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::judge::Verdict;
    use crate::report::story;

    /// Keeps what it takes; fails or panics at its second event if told to.
    struct Witness {
        seen: Arc<Mutex<Vec<String>>>,
        second: fn() -> Result<(), ReportError>,
    }

    impl Witness {
        fn pair(second: fn() -> Result<(), ReportError>) -> (Box<dyn Report>, Arc<Mutex<Vec<String>>>) {
            let seen = Arc::default();
            (Box::new(Self { seen: Arc::clone(&seen), second }), seen)
        }
    }

    impl Report for Witness {
        fn name(&self) -> &'static str {
            "witness"
        }

        fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
            let what = match &event.what {
                What::RunEnded { exit_code, .. } => format!("ended {exit_code}"),
                What::CaseEnded { id, .. } => id.case.clone(),
                _ => "other".to_owned(),
            };
            let mut seen = self.seen.lock().unwrap();
            seen.push(what);
            let nth = seen.len();
            drop(seen);
            if nth == 2 { (self.second)() } else { Ok(()) }
        }

        fn finish(self: Box<Self>) -> Result<(), ReportError> {
            self.seen.lock().unwrap().push("finished".to_owned());
            Ok(())
        }
    }

    fn started(cases: &[&str]) -> What {
        story::run_started(&["v1.32.13"], cases)
    }

    fn ended(case: &str, verdict: Verdict) -> What {
        story::case_ended("message", case, "v1.32.13", 1, verdict, "why")
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        let gone = || Err(ReportError::Output(io::ErrorKind::BrokenPipe.into()));
        let (leaves, left) = Witness::pair(gone);
        let reports = Reports::start(vec![leaves], Clock::wall()).unwrap();
        let events = reports.events();
        events.send(started(&["a"]));
        events.send(ended("a", Verdict::Passed));
        let finished = reports.finish();
        assert!(finished.failures.is_empty() && finished.exit_code == exit_code::SUCCESS, "{finished:?}");
        assert_eq!(*left.lock().unwrap(), ["other", "a"], "it is told nothing more");
    }

    #[test]
    fn a_failing_report_loses_neither_the_others_nor_itself() {
        let disk_full = || Err(ReportError::Output(io::Error::other("disk full")));
        let (fails, failing) = Witness::pair(disk_full);
        let (panics, panicking) = Witness::pair(|| panic!("at the disco"));
        let (works, working) = Witness::pair(|| Ok(()));
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
        assert_eq!(failures[0], "witness: cannot write what it has to say: disk full");
        assert!(failures[1].contains("at the disco"), "{failures:?}");
        assert_eq!(finished.exit_code, exit_code::INFRASTRUCTURE);
        events.send(What::Interrupted { stage: 2 });
    }

    #[test]
    fn the_exit_status_follows_from_the_stream() {
        let step =
            What::ClusterFailed { cluster: "c".to_owned(), seconds: 1.0, error: "no image".to_owned() };
        let cluster = What::ClusterStarted { cluster: "c".to_owned(), kubelets: vec![], reused: false };
        for (told, code) in [
            (vec![started(&["a"]), ended("a", Verdict::Fixed)], exit_code::SUCCESS),
            (vec![started(&["a"]), ended("a", Verdict::Inconclusive)], exit_code::INCONCLUSIVE),
            (vec![started(&["a", "b"]), ended("a", Verdict::Passed)], exit_code::INFRASTRUCTURE),
            (vec![started(&[]), cluster, step], exit_code::INFRASTRUCTURE),
            (vec![started(&["a"]), What::Interrupted { stage: 1 }], exit_code::INTERRUPTED),
        ] {
            let reports = Reports::start(vec![], Clock::wall()).unwrap();
            told.iter().for_each(|what| reports.events().send(what.clone()));
            assert_eq!(reports.finish().exit_code, code, "{told:?}");
        }
    }

    #[test]
    fn dropped_reports_are_finished() {
        let (works, seen) = Witness::pair(|| Ok(()));
        let reports = Reports::start(vec![works], Clock::wall()).unwrap();
        reports.events().send(started(&["a"]));
        drop(reports);
        assert_eq!(*seen.lock().unwrap(), ["other", "ended 4", "finished"]);
    }
}
