//! What time it is in a run: the wall's, or a model's.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// When the time of every model begins.
const MODEL: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Stamps what happens in a run. It goes on with Tokio's time, so that with a paused clock it shows a model's time, which goes as fast
/// as the work allows and is the same in every run. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Timestamp,
    began: Instant,
    model: bool,
}

impl Clock {
    /// The wall's time.
    pub fn wall() -> Self {
        Self { origin: Timestamp::now(), began: Instant::now(), model: false }
    }

    /// A model's time, which begins now at 2026-01-01T00:00:00Z. To be asked within the runtime whose clock is paused.
    pub fn model() -> Self {
        Self { origin: MODEL, began: Instant::now(), model: true }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::MAX);
        self.origin.saturating_add(since).unwrap_or(Timestamp::MAX)
    }

    /// When it began.
    pub fn origin(&self) -> Timestamp {
        self.origin
    }

    /// Whether it shows a model's time, which no other thread can tell.
    pub fn is_model(&self) -> bool {
        self.model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_model_has_the_same_times_in_every_run() {
        let clock = Clock::model();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:01.5Z");
    }
}
