//! Waiting by progress: a wait goes on as long as something moves, however slow the machine.

use std::time::Duration;

use tokio::time::Instant;

/// How a wait stands.
pub enum Probe<T> {
    /// It is over.
    Done(T),
    /// Not yet; as long as this text changes there is progress.
    Pending(String),
}

/// Nothing moved for as long as the wait had patience.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no progress for {} s: {last}", patience.as_secs())]
pub struct Stalled {
    /// How long nothing moved.
    pub patience: Duration,
    /// The last thing that was seen.
    pub last: String,
}

/// Asks until it is done, or until what is seen has not changed for `patience`.
pub async fn until<T, F>(patience: Duration, every: Duration, mut probe: F) -> Result<T, Stalled>
where
    F: AsyncFnMut() -> Probe<T>,
{
    let mut moved = Instant::now();
    let mut last = String::new();
    loop {
        match probe().await {
            Probe::Done(value) => return Ok(value),
            Probe::Pending(seen) if seen != last => (moved, last) = (Instant::now(), seen),
            Probe::Pending(_) if moved.elapsed() >= patience => return Err(Stalled { patience, last }),
            Probe::Pending(_) => {}
        }
        tokio::time::sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_lasts_as_long_as_something_moves() {
        let (patience, every) = (Duration::from_secs(10), Duration::from_secs(1));
        let mut asked = 0;
        let moving = until(patience, every, async || {
            asked += 1;
            if asked == 100 { Probe::Done(asked) } else { Probe::Pending(format!("{}", asked / 5)) }
        });
        assert_eq!(moving.await, Ok(100));
        let stuck = until::<(), _>(patience, every, async || Probe::Pending("stuck".to_owned())).await;
        assert_eq!(stuck, Err(Stalled { patience, last: "stuck".to_owned() }));
    }
}
