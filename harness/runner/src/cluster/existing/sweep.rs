//! Removing what a run made: its namespaces.

use std::time::Duration;

use futures::future::try_join_all;
use kube::Client;

use super::ExistingError;
use crate::stage::Namespace;
use crate::wait::{self, Probe};

/// How long pods and namespaces may show no change on their way out.
const PATIENCE: Duration = Duration::from_secs(120);

/// Deletes the namespaces of a run; returns when they are gone, and how many there were.
pub(super) async fn sweep(client: &Client, cluster: &str, run: &str) -> Result<usize, ExistingError> {
    let namespaces = Namespace::of(client, Some(run)).await?;
    try_join_all(namespaces.iter().map(|namespace| namespace.delete(PATIENCE))).await?;
    wait::until(PATIENCE, Duration::from_millis(500), async || {
        match Namespace::of(client, Some(run)).await {
            Err(error) => Probe::Pending(error.to_string()),
            Ok(left) if left.is_empty() => Probe::Done(()),
            Ok(left) => Probe::Pending(left.into_iter().map(|left| left.name).collect::<Vec<_>>().join(", ")),
        }
    })
    .await
    .map_err(|stalled| ExistingError::Left { cluster: cluster.to_owned(), stalled })?;
    Ok(namespaces.len())
}
