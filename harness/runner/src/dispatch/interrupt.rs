//! Interruption of a run in three stages: clean up, only write reports, exit.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use evictlab_report::InterruptStage;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Limit for short work that completes after an interrupt.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(10);

/// Time within which signals of several kinds are one request: Prow sends SIGINT and SIGTERM at
/// once.
const SAME_REQUEST: Duration = Duration::from_secs(2);

/// Stages of an interrupt. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// First stage: end the cases, delete created objects, write reports.
    pub stop: CancellationToken,
    /// Second stage: write reports without cleanup.
    pub reports_only: CancellationToken,
    /// The stage, for reports.
    pub stage: InterruptStage,
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP: each signal advances by one stage, and the third exits
    /// the process with status 130. Signals of different kinds within two seconds count as one.
    /// Call it once, before objects are created.
    ///
    /// Signals have a thread of their own, so that they are handled while the run evaluates an
    /// expression or waits for the reader of its output.
    ///
    /// An ignored SIGHUP stays ignored, as `nohup` expects. An ignored SIGINT does not: shells
    /// ignore it for background jobs of scripts, so a SIGINT to such a job is sent on purpose.
    ///
    /// # Errors
    /// A signal handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let mut signals = {
            let _context = runtime.enter();
            Signals::install()?
        };
        let interrupt = Self::default();
        let stage = interrupt.clone();
        let handle = async move {
            let mut requests = Requests::default();
            loop {
                let kind = signals.next().await;
                if requests.is_new(kind, Instant::now()) && stage.advance() == 3 {
                    std::process::exit(130);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(handle))?;
        Ok(interrupt)
    }

    /// Awaits `work`; returns `None` if it is interrupted.
    ///
    /// After an interrupt, short work such as reading an image still has time to complete and clean
    /// up; long work such as an image pull is dropped.
    pub async fn or_none<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = self.stop.cancelled() => {}
        }
        tokio::select! {
            biased;
            _ = tokio::time::timeout(COMPLETION_TIMEOUT, &mut work) => {}
            () = self.reports_only.cancelled() => {}
        }
        None
    }

    /// Advances to the next stage and returns its number, 1 to 3. At stage 3, the caller exits.
    pub fn advance(&self) -> u8 {
        let stage = if !self.stop.is_cancelled() {
            self.stop.cancel();
            1
        } else if !self.reports_only.is_cancelled() {
            self.reports_only.cancel();
            2
        } else {
            3
        };
        self.stage.set(stage);
        stage
    }
}

/// The signals that interrupt a run.
struct Signals {
    interrupts: Signal,
    terminations: Signal,
    /// `None` if SIGHUP is ignored.
    hangups: Option<Signal>,
}

impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: if is_sighup_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Awaits the next signal, and returns its kind.
    async fn next(&mut self) -> SignalKind {
        let hangup = async {
            match &mut self.hangups {
                Some(hangups) => hangups.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.interrupts.recv() => SignalKind::interrupt(),
            _ = self.terminations.recv() => SignalKind::terminate(),
            _ = hangup => SignalKind::hangup(),
        }
    }
}

/// The signal that last counted as a request to end the run.
#[derive(Default)]
struct Requests {
    last: Option<(SignalKind, Instant)>,
}

impl Requests {
    /// Returns whether a signal is a request of its own, and not another kind of signal for the
    /// last one.
    fn is_new(&mut self, kind: SignalKind, at: Instant) -> bool {
        let is_same = |(last, when): &(SignalKind, Instant)| {
            *last != kind && at.saturating_duration_since(*when) < SAME_REQUEST
        };
        if self.last.as_ref().is_some_and(is_same) {
            return false;
        }
        self.last = Some((kind, at));
        true
    }
}

/// Returns whether this process was started with SIGHUP ignored: bit 0 of `SigIgn` in
/// `/proc/self/status`. On systems other than Linux, SIGHUP counts as not ignored.
fn is_sighup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interrupt_advances_by_one_stage() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.stage.is_interrupted());
        assert_eq!((interrupt.advance(), interrupt.stop.is_cancelled()), (1, true));
        assert!(interrupt.stage.is_interrupted());
        assert!(!interrupt.reports_only.is_cancelled());
        assert_eq!((interrupt.advance(), interrupt.reports_only.is_cancelled()), (2, true));
        assert_eq!(interrupt.advance(), 3);
    }

    #[test]
    fn signals_of_two_kinds_at_once_are_one_request() {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        let mut requests = Requests::default();
        for (kind, seconds, is_new) in [
            (interrupt, 0.0, true),
            (terminate, 0.1, false),
            (interrupt, 0.2, true),
            (terminate, 1.0, false),
            (terminate, 7.5, true),
            (terminate, 7.6, true),
        ] {
            assert_eq!(requests.is_new(kind, at(seconds)), is_new, "{kind:?} at {seconds} s");
        }
    }
}
