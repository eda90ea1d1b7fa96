//! Requests to a kubelet through the API server.

use std::time::Duration;

use evictlab_rules::summary::Sample;
use futures::future::try_join;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

use evictlab_cluster::{KubeletProxy, NodeError, api_error_message};

/// Timeout of a request: the API server waits longer for a kubelet that is gone.
const QUERY_TIMEOUT: Duration = Duration::from_secs(15);

/// The state of a kubelet.
#[derive(Clone, Debug)]
pub(super) struct KubeletSnapshot {
    /// Configuration from `configz`.
    pub config: Value,
    /// The Summary.
    pub sample: Sample,
}

/// A failed request to a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    /// The API server did not answer.
    #[error("{0}")]
    ApiServer(String),
    /// The API server answered, the kubelet did not.
    #[error("{0}")]
    Kubelet(String),
}

/// Requests the configuration and the Summary of a kubelet.
pub(super) async fn query(client: &Client, node: &str) -> Result<KubeletSnapshot, QueryError> {
    let proxy = KubeletProxy::new(client, node);
    let both = timeout(QUERY_TIMEOUT, try_join(proxy.configz(), proxy.sample())).await;
    let timed_out = || QueryError::Kubelet(format!("no answer within {} s", QUERY_TIMEOUT.as_secs()));
    let (config, sample) =
        both.map_err(|_| timed_out())?.map_err(|error| QueryError::from_node_error(&error))?;
    Ok(KubeletSnapshot { config, sample })
}

impl QueryError {
    /// Returns whether the kubelet has started and has not measured its node yet (`stats provider`
    /// of cAdvisor in the kubelet: `failed to get root cgroup stats`).
    pub(super) fn is_without_statistics(&self) -> bool {
        matches!(self, Self::Kubelet(reason) if reason.contains("failed to get root cgroup stats"))
    }

    fn from_node_error(error: &NodeError) -> Self {
        match error {
            NodeError::Api { source, .. } => match **source {
                kube::Error::Api(_) => Self::Kubelet(api_error_message(source)),
                _ => Self::ApiServer(api_error_message(source)),
            },
            other => Self::Kubelet(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_that_has_just_started_is_without_statistics() {
        let starting = r#"Internal Error: failed to get root cgroup stats: unknown container "/""#;
        for (error, expected) in [
            (QueryError::Kubelet(starting.to_owned()), true),
            (QueryError::Kubelet("no answer within 15 s".to_owned()), false),
            (QueryError::ApiServer(starting.to_owned()), false),
        ] {
            assert_eq!(error.is_without_statistics(), expected, "{error}");
        }
    }
}

#[cfg(test)]
mod error_texts {
    use super::*;
    use crate::error_texts::row;

    #[test]
    fn texts() {
        let rows = [
            row(QueryError::ApiServer("connection refused".to_owned())),
            row(QueryError::Kubelet("no answer within 15 s".to_owned())),
        ];
        insta::assert_snapshot!(rows.concat());
    }
}
