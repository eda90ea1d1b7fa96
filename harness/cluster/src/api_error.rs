//! Short messages of client errors.

use std::error::Error;

use kube::core::Status;

/// Answers that are not read to their end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// An answer, or a line of a stream, is too long.
    #[error("the answer to {request} has more than {mebibytes} MiB")]
    TooLong {
        /// Method and path of the request.
        request: String,
        /// Maximum length in MiB.
        mebibytes: usize,
    },
    /// A list has too many pages.
    #[error("the list {path} has more than {pages} pages")]
    TooManyPages {
        /// Path of the list.
        path: String,
        /// Maximum number of pages.
        pages: usize,
    },
}

/// Message of an API error without the client's wrapping: the API server's own message, or the
/// innermost cause of a failed connection.
pub fn api_error_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => first_cause(other),
    }
}

/// Returns whether the API server did not answer, or answered with an error that may pass: it is
/// busy, or has an error of its own.
pub(crate) fn is_unavailable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => is_temporary_status(status.code),
        // Another attempt would read as much again.
        other => !causes(other).any(|cause| cause.is::<AnswerError>()),
    }
}

/// Returns whether the API server was too busy to carry out a request.
pub(crate) fn is_busy(error: &kube::Error) -> bool {
    let is_busy = |status: &Status| matches!(status.code, 429 | 503) && !is_refused_by_budget(status);
    matches!(error, kube::Error::Api(status) if is_busy(status))
}

/// Returns whether a Status refuses an eviction because of a PodDisruptionBudget. The status 429
/// of a busy server does not have the cause (`createTooManyRequestsError` in
/// `pkg/registry/core/pod/storage/eviction.go`).
pub(crate) fn is_refused_by_budget(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "DisruptionBudget")
}

/// Returns whether an error of the API server may pass.
pub(crate) fn is_temporary_status(code: u16) -> bool {
    code == 429 || code >= 500
}

/// Innermost cause of an error, such as "Connection refused". The errors around the cause only
/// repeat that a request failed.
pub(crate) fn first_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error and its sources.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("request failed")]
    struct Request(#[source] std::io::Error);

    #[test]
    fn reports_the_innermost_cause() {
        assert_eq!(first_cause(&Request(std::io::Error::other("refused"))), "refused");
    }
}
