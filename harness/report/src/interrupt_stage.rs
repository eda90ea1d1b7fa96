//! The number of interrupts of a run, for reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The number of interrupts so far. Unlike the events of a run, it also counts those that arrive
/// after the run has ended, while its output waits for the reader. Clones share the number.
#[derive(Clone, Debug, Default)]
pub struct InterruptStage(Arc<AtomicU8>);

impl InterruptStage {
    /// Sets the number of interrupts.
    pub fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    /// Returns whether the run was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}
