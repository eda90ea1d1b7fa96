//! Short messages of client errors.

/// Message of an API error without the client's wrapping: the API server's own message, or the
/// innermost cause of a failed connection.
pub fn api_error_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => first_cause(other),
    }
}

/// Reports whether the API server did not answer, or answered with an error that may pass: it is
/// busy, or has an error of its own.
pub(crate) fn is_unavailable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}

/// Innermost cause of an error, such as "Connection refused". The errors around the cause only
/// repeat that a request failed.
pub(crate) fn first_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
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
