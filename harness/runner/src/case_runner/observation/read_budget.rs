//! Time for the evidence that is read once, at the end of a case.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// Limit for all readings of a case on a fast node. The pods still run meanwhile, and the node may
/// be under pressure.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that is left for readings. The time between two of them does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBudget {
    limit: Duration,
    left: Duration,
}

impl ReadBudget {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, left: limit }
    }

    /// Awaits a reading while time is left.
    ///
    /// # Errors
    /// The text of the reading's error, or that no time is left.
    pub(crate) async fn read<T, E: Display>(
        &mut self,
        reading: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let began = Instant::now();
        let result = timeout(self.left, reading).await;
        self.left = self.left.saturating_sub(began.elapsed());
        match result {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => {
                let seconds = self.limit.as_secs();
                Err(format!("no answer within the {seconds} s for all evidence at the end of the case"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readings_share_a_limit() {
        let mut budget = ReadBudget::new(Duration::from_secs(30));
        let answer = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, String>(seconds)
        };
        assert_eq!(budget.read(answer(20)).await, Ok(20));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(budget.read(answer(9)).await, Ok(9));
        assert_eq!(budget.read(async { Err::<(), _>("refused") }).await, Err("refused".to_owned()));
        let began = Instant::now();
        let late = budget.read(answer(1000)).await.unwrap_err();
        assert_eq!(
            (late.as_str(), began.elapsed().as_secs()),
            ("no answer within the 30 s for all evidence at the end of the case", 1)
        );
        assert!(budget.read(answer(1)).await.is_err());
        assert_eq!(began.elapsed().as_secs(), 1);
    }
}
