//! Three stages of interruption: clean up, only report, leave.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long something short that was begun may take to end by itself.
const SHORT: Duration = Duration::from_secs(10);

/// What a person or the system wants stopped. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// First: stop the cases, collect, delete what was made, write the reports.
    pub stop: CancellationToken,
    /// Second: write the reports and nothing else.
    pub reports_only: CancellationToken,
}

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP (a closed terminal) each take a stage; the third ends the process with status 130. To be
    /// called once, within a runtime, before anything is made. SIGHUP stays ignored where it was, as `nohup` asks. SIGINT does not: a
    /// shell's script ignores it for whatever it starts in the background, and who sends it there means it.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        let mut hangups = match hangups_are_ignored() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        let stages = interrupt.clone();
        tokio::spawn(async move {
            loop {
                let hangup = async {
                    match &mut hangups {
                        Some(hangups) => hangups.recv().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    _ = interrupts.recv() => {}
                    _ = terminations.recv() => {}
                    _ = hangup => {}
                }
                if stages.next() == 3 {
                    std::process::exit(130);
                }
            }
        });
        Ok(interrupt)
    }

    /// Does `work` unless it is interrupted. What of it is short, such as a look into an image, is still let come to its end, so that it
    /// tidies up after itself; a pull is not.
    pub async fn or_none<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = self.stop.cancelled() => {}
        }
        tokio::select! {
            biased;
            _ = tokio::time::timeout(SHORT, &mut work) => {}
            () = self.reports_only.cancelled() => {}
        }
        None
    }

    /// Takes the next stage; returns its number, 1 to 3. The third is the caller's: to leave at once.
    pub fn next(&self) -> u8 {
        if !self.stop.is_cancelled() {
            self.stop.cancel();
            return 1;
        }
        if !self.reports_only.is_cancelled() {
            self.reports_only.cancel();
            return 2;
        }
        3
    }
}

/// Whether this process was started with SIGHUP ignored: bit 0 of `SigIgn` in `/proc/self/status`. Elsewhere than on Linux nobody tells.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interrupt_is_a_stage_further() {
        let interrupt = Interrupt::default();
        assert_eq!((interrupt.next(), interrupt.stop.is_cancelled()), (1, true));
        assert!(!interrupt.reports_only.is_cancelled());
        assert_eq!((interrupt.next(), interrupt.reports_only.is_cancelled()), (2, true));
        assert_eq!(interrupt.next(), 3);
    }
}
