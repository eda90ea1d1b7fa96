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

/// Factor from the time without progress to the total time after which a wait ends: a state that
/// comes and goes, such as a node that is ready every other minute, looks like progress.
const TOTAL_TIMEOUT_FACTOR: u32 = 20;

/// A wait that saw no progress for its whole timeout, or was not done after its total timeout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {} s: {last}", if *has_progress { "not done within" } else { "no progress for" }, timeout.as_secs())]
pub struct StalledError {
    /// The timeout that the wait reached.
    pub timeout: Duration,
    /// True if it is the total one.
    has_progress: bool,
    /// Text of the last pending poll.
    pub last: String,
}

impl StalledError {
    /// Returns the error of a wait whose pending polls had this text for the whole timeout.
    pub fn without_progress(timeout: Duration, last: String) -> Self {
        Self { timeout, has_progress: false, last }
    }

    /// Replaces the text of the last pending poll.
    #[must_use]
    pub fn with_last(self, last: String) -> Self {
        Self { last, ..self }
    }
}

/// Polls once per `interval` until the poll is done.
///
/// # Errors
/// The text of the pending poll has not changed for `timeout`, or the poll is not done after twenty
/// times as long. A slow machine that still makes progress does not time out before that.
pub async fn until<T, F>(timeout: Duration, interval: Duration, mut poll: F) -> Result<T, StalledError>
where
    F: AsyncFnMut() -> Poll<T>,
{
    let began = Instant::now();
    let total_timeout = timeout * TOTAL_TIMEOUT_FACTOR;
    let mut progressed = began;
    let mut last = String::new();
    loop {
        match poll().await {
            Poll::Done(value) => return Ok(value),
            Poll::Pending(last) if began.elapsed() >= total_timeout => {
                return Err(StalledError { timeout: total_timeout, has_progress: true, last });
            }
            Poll::Pending(text) if text != last => (progressed, last) = (Instant::now(), text),
            Poll::Pending(_) if progressed.elapsed() >= timeout => {
                return Err(StalledError::without_progress(timeout, last));
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
        assert_eq!(stalled, Err(StalledError::without_progress(timeout, "stuck".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_that_comes_and_goes_is_not_endless_progress() {
        let (timeout, interval, mut polls) = (Duration::from_secs(10), Duration::from_secs(1), 0);
        let flapping = until::<(), _>(timeout, interval, async || {
            polls += 1;
            Poll::Pending(if polls % 2 == 0 { "ready" } else { "not ready" }.to_owned())
        });
        let error = flapping.await.unwrap_err();
        assert_eq!(error.to_string(), "not done within 200 s: not ready");
    }
}
