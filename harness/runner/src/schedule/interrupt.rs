//! Three stages of interruption: clean up, only report, leave.

use tokio_util::sync::CancellationToken;

/// What a person or the system wants stopped. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// First: stop the cases, collect, delete what was made, write the reports.
    pub stop: CancellationToken,
    /// Second: write the reports and nothing else.
    pub reports_only: CancellationToken,
}

impl Interrupt {
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

    /// Waits for SIGINT and SIGTERM for ever, and takes a stage for each; the third ends the process with status 130.
    pub async fn on_signals(self, told: impl Fn(u8) + Send + 'static) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
            }
            let stage = self.next();
            told(stage);
            if stage == 3 {
                std::process::exit(130);
            }
        }
    }
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
