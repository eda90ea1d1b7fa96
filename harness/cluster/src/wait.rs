//! Waiting that times out only without progress.

use std::time::Duration;

use tokio::time::Instant;

use crate::api_error::is_unavailable;

/// Result of one poll of a wait.
pub enum Poll<T> {
    /// The condition holds; the wait ends with this value.
    Done(T),
    /// The condition does not hold yet. A changed text counts as progress.
    Pending(String),
}

/// A wait that saw no progress for its whole timeout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no progress for {} s: {last}", timeout.as_secs())]
pub struct StalledError {
    /// Longest time without progress that the wait accepts.
    pub timeout: Duration,
    /// Text of the last pending poll.
    pub last: String,
}

/// Polls once per `interval` until the poll is done.
///
/// # Errors
/// The text of the pending poll has not changed for `timeout`. A slow machine that still makes
/// progress does not time out.
pub async fn until<T, F>(timeout: Duration, interval: Duration, mut poll: F) -> Result<T, StalledError>
where
    F: AsyncFnMut() -> Poll<T>,
{
    let mut progressed = Instant::now();
    let mut last = String::new();
    loop {
        match poll().await {
            Poll::Done(value) => return Ok(value),
            Poll::Pending(text) if text != last => (progressed, last) = (Instant::now(), text),
            Poll::Pending(_) if progressed.elapsed() >= timeout => {
                return Err(StalledError { timeout, last });
            }
            Poll::Pending(_) => {}
        }
        tokio::time::sleep(interval).await;
    }
}

/// Time for which the preparation of a run on an existing cluster repeats a request during an
/// outage of the API server: as long as the run may keep its nodes without renewing its Lease.
pub(crate) const OUTAGE_TIMEOUT: Duration = Duration::from_secs(100);

/// Sends a request again while the API server does not answer or reports an internal error, for up
/// to `timeout`.
pub(crate) async fn retry_while_unavailable<T>(
    timeout: Duration,
    send: impl AsyncFnMut() -> Result<T, kube::Error>,
) -> Result<T, kube::Error> {
    retry_while(timeout, is_unavailable, send).await
}

/// Repeats an operation while its error is temporary, for up to `timeout`.
pub(crate) async fn retry_while<T, E>(
    timeout: Duration,
    is_temporary: impl Fn(&E) -> bool,
    mut operation: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    const INTERVAL: Duration = Duration::from_millis(500);
    let began = Instant::now();
    loop {
        match operation().await {
            Err(error) if is_temporary(&error) && began.elapsed() < timeout => {
                tokio::time::sleep(INTERVAL).await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn times_out_only_without_progress() {
        let (timeout, interval) = (Duration::from_secs(10), Duration::from_secs(1));
        let mut polls = 0;
        let progressing = until(timeout, interval, async || {
            polls += 1;
            if polls == 100 { Poll::Done(polls) } else { Poll::Pending(format!("{}", polls / 5)) }
        });
        assert_eq!(progressing.await, Ok(100));
        let stalled = until::<(), _>(timeout, interval, async || Poll::Pending("stuck".to_owned())).await;
        assert_eq!(stalled, Err(StalledError { timeout, last: "stuck".to_owned() }));
    }
}
