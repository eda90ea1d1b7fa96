//! Waiting until objects are gone.

use std::time::Duration;

use evictlab_cluster::wait::{self, Poll};
use evictlab_cluster::{JobName, api_error_message};

use super::error::JobError;

/// Waits until nothing remains. `remaining` returns what remains; `None` at the end. A failed
/// request is not progress, and is part of the error.
///
/// # Errors
/// The remaining objects have not changed for `timeout`.
pub(super) async fn wait_until_gone(
    job: &JobName,
    timeout: Duration,
    remaining: impl AsyncFn() -> Result<Option<String>, kube::Error>,
) -> Result<(), JobError> {
    let (mut last, mut failure) = ("not known".to_owned(), None);
    let waited = wait::until(timeout, Duration::from_secs(1), async || {
        match remaining().await {
            Ok(None) => return Poll::Done(()),
            Ok(Some(objects)) => (last, failure) = (objects, None),
            Err(error) => failure = Some(api_error_message(&error)),
        }
        Poll::Pending(format!("remaining: {last}"))
    });
    let Err(mut stalled) = waited.await else { return Ok(()) };
    if let Some(failure) = failure {
        stalled.last = format!("{}; the last request failed: {failure}", stalled.last);
    }
    Err(JobError::Remains { job: job.clone(), stalled })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn unavailable() -> kube::Error {
        kube::Error::Service(std::io::Error::other("connection reset").into())
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_answers_every_other_request_is_not_progress() {
        let job = JobName { namespace: "ci".to_owned(), name: "nightly".to_owned() };
        let requests = Cell::new(0);
        let flapping = async || {
            requests.set(requests.get() + 1);
            if requests.get() % 2 == 0 { Err(unavailable()) } else { Ok(Some("pod a".to_owned())) }
        };
        let waited = wait_until_gone(&job, Duration::from_secs(60), flapping);
        let waited = tokio::time::timeout(Duration::from_secs(600), waited).await.expect("it waits for ever");
        let error = waited.unwrap_err().to_string();
        assert!(error.contains("no progress for 60 s: remaining: pod a"), "{error}");

        let waited = wait_until_gone(&job, Duration::from_secs(60), async || Err(unavailable()));
        let error = waited.await.unwrap_err().to_string();
        assert!(error.ends_with("not known; the last request failed: connection reset"), "{error}");
    }
}
