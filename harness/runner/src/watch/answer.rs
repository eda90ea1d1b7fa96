//! Asking a kubelet.

use std::time::Duration;

use evictlab_rules::pod::Sample;
use futures::future::try_join;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::{NodeError, Proxy, said};

/// How long a kubelet may take: one that is gone is not answered for by its API server for long.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a kubelet tells of its node.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Its configuration.
    pub config: Value,
    /// Its Summary.
    pub sample: Sample,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unread {
    /// The API server does not answer.
    #[error("{0}")]
    Server(String),
    /// It does, and this kubelet does not.
    #[error("{0}")]
    Kubelet(String),
}

/// Asks a node's kubelet for its configuration and its Summary.
pub(super) async fn ask(client: &Client, node: &str) -> Result<Answer, Unread> {
    let proxy = Proxy::new(client, node);
    let both = timeout(PATIENCE, try_join(proxy.configz(), proxy.summary())).await;
    let silent = || Unread::Kubelet(format!("no answer within {} s", PATIENCE.as_secs()));
    let (config, summary) = both.map_err(|_| silent())?.map_err(|error| Unread::of(&error))?;
    let unreadable = |error| Unread::Kubelet(format!("its Summary cannot be read: {error}"));
    Ok(Answer { config, sample: Sample::deserialize(summary).map_err(unreadable)? })
}

impl Unread {
    fn of(error: &NodeError) -> Self {
        match error {
            NodeError::Api { source, .. } => match **source {
                kube::Error::Api(_) => Self::Kubelet(said(source)),
                _ => Self::Server(said(source)),
            },
            other => Self::Kubelet(other.to_string()),
        }
    }
}
