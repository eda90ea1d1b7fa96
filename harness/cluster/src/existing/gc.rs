//! Namespaces of runs in an existing cluster: listing and deleting them by their run label.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use jiff::Timestamp;
use kube::Client;

use super::access::ClusterAccess;
use super::client::ClusterClient;
use super::error::ExistingError;
use crate::owner::{CLUSTER_LIFETIME, Owner};
use crate::wait::{self, Probe};
use crate::workload::{Namespace, NamespaceRecord};

/// Maximum time without any change while pods and namespaces are being deleted.
const DELETION_TIMEOUT: Duration = Duration::from_secs(120);

/// Namespaces of one run.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// Id of the run.
    pub run: String,
    /// Number of namespaces.
    pub namespaces: usize,
    /// Reason that they are kept; `None` if the run is dead.
    pub left_alone: Option<&'static str>,
}

/// Lists the runs with namespaces in a cluster; returns the name of the cluster, too.
pub async fn leftovers(access: &ClusterAccess) -> Result<(String, Vec<Leftover>), ExistingError> {
    let cluster = access.reach().await?;
    let leftovers = list_leftovers(&cluster).await?;
    Ok((cluster.name, leftovers))
}

/// Deletes the namespaces of a dead run; returns their number.
pub async fn collect_leftovers(access: &ClusterAccess, run: &str) -> Result<usize, ExistingError> {
    let cluster = access.reach().await?;
    delete_namespaces(&cluster.client, &cluster.name, run).await
}

/// Deletes the namespaces of a run, waits until they are gone, and returns their number.
pub(super) async fn delete_namespaces(
    client: &Client,
    cluster: &str,
    run: &str,
) -> Result<usize, ExistingError> {
    let namespaces = Namespace::list(client, Some(run)).await?;
    try_join_all(namespaces.iter().map(|namespace| namespace.delete(DELETION_TIMEOUT))).await?;
    wait::until(DELETION_TIMEOUT, Duration::from_millis(500), async || {
        match Namespace::list(client, Some(run)).await {
            Err(error) => Probe::Pending(error.to_string()),
            Ok(remaining) if remaining.is_empty() => Probe::Done(()),
            Ok(remaining) => {
                let names: Vec<String> = remaining.into_iter().map(|namespace| namespace.name).collect();
                Probe::Pending(names.join(", "))
            }
        }
    })
    .await
    .map_err(|stalled| ExistingError::NamespacesRemain { cluster: cluster.to_owned(), stalled })?;
    Ok(namespaces.len())
}

/// Lists the runs with namespaces in a cluster.
pub(super) async fn list_leftovers(cluster: &ClusterClient) -> Result<Vec<Leftover>, ExistingError> {
    let mut runs: BTreeMap<String, Vec<NamespaceRecord>> = BTreeMap::new();
    for record in Namespace::list_records(&cluster.client).await? {
        runs.entry(record.run.clone()).or_default().push(record);
    }
    let now = Timestamp::now();
    let leftover = |(run, records): (String, Vec<NamespaceRecord>)| Leftover {
        run,
        namespaces: records.len(),
        left_alone: records.iter().find_map(|record| keep_reason(record.owner.as_ref(), record.created, now)),
    };
    Ok(runs.into_iter().map(leftover).collect())
}

/// Reason to keep a namespace: its owner is running, or may be running on another host.
fn keep_reason(owner: Option<&Owner>, created: Option<Timestamp>, now: Timestamp) -> Option<&'static str> {
    let age = created.and_then(|created| Duration::try_from(now.duration_since(created)).ok());
    let is_old = age.is_some_and(|age| age > CLUSTER_LIFETIME);
    match owner {
        Some(owner) if owner.is_here() => owner.alive().then_some("its run is active"),
        _ if is_old => None,
        Some(_) => Some("its run is on another host, and less than 12 hours old"),
        None => Some("it has no owner, and it is less than 12 hours old"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_namespaces_of_runs_that_may_be_active() {
        let here = Owner::this();
        let dead = Owner { started: "earlier".to_owned(), ..here.clone() };
        let elsewhere = Owner { host: "another".to_owned(), ..here.clone() };
        let now = Timestamp::now();
        let hours = |hours: i64| Some(now - jiff::SignedDuration::from_hours(hours));
        assert_eq!(keep_reason(Some(&here), hours(20), now), Some("its run is active"));
        assert_eq!(keep_reason(Some(&dead), hours(0), now), None);
        assert!(keep_reason(Some(&elsewhere), hours(11), now).unwrap().contains("another host"));
        assert_eq!(keep_reason(Some(&elsewhere), hours(13), now), None);
        assert!(keep_reason(None, hours(1), now).unwrap().contains("no owner"));
        assert!(keep_reason(None, None, now).is_some(), "its age is unknown");
        assert_eq!(keep_reason(None, hours(13), now), None);
    }
}
