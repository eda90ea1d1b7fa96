//! Waiting that times out only without progress, and the backoff of watches.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::Instant;

use crate::api_error::is_unavailable;

/// Result of one probe of a wait.
pub enum Probe<T> {
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
    /// Text of the last pending probe.
    pub last: String,
}

/// Probes once per `interval` until the probe is done.
///
/// # Errors
/// The text of the pending probe has not changed for `timeout`. A slow machine that still makes
/// progress does not time out.
pub async fn until<T, F>(timeout: Duration, interval: Duration, mut probe: F) -> Result<T, StalledError>
where
    F: AsyncFnMut() -> Probe<T>,
{
    let mut progressed = Instant::now();
    let mut last = String::new();
    loop {
        match probe().await {
            Probe::Done(value) => return Ok(value),
            Probe::Pending(text) if text != last => (progressed, last) = (Instant::now(), text),
            Probe::Pending(_) if progressed.elapsed() >= timeout => {
                return Err(StalledError { timeout, last });
            }
            Probe::Pending(_) => {}
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

/// Delays between attempts to reopen a broken watch: 0.8 s, doubled up to 30 s, reset by success.
/// Without jitter, so that runs on the model are reproducible.
#[derive(Debug, Default)]
pub struct WatchBackoff {
    last: Option<Duration>,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let next = self.last.map_or(Duration::from_millis(800), |last| last * 2);
        self.last = Some(next.min(Duration::from_secs(30)));
        self.last
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn times_out_only_without_progress() {
        let (timeout, interval) = (Duration::from_secs(10), Duration::from_secs(1));
        let mut probes = 0;
        let progressing = until(timeout, interval, async || {
            probes += 1;
            if probes == 100 { Probe::Done(probes) } else { Probe::Pending(format!("{}", probes / 5)) }
        });
        assert_eq!(progressing.await, Ok(100));
        let stalled = until::<(), _>(timeout, interval, async || Probe::Pending("stuck".to_owned())).await;
        assert_eq!(stalled, Err(StalledError { timeout, last: "stuck".to_owned() }));
    }

    #[test]
    fn watch_delays_double_up_to_30_s() {
        let mut backoff = WatchBackoff::default();
        let delays: Vec<u128> = backoff.by_ref().take(7).map(|delay| delay.as_millis()).collect();
        assert_eq!(delays, [800, 1600, 3200, 6400, 12800, 25600, 30000]);
        backoff.reset();
        assert_eq!(backoff.next(), Some(Duration::from_millis(800)));
    }
}
