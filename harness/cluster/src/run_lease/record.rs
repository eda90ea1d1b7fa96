//! The Leases of all runs, as other processes read them.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::server_clock::ServerClock;
use crate::owner::Owner;
use crate::typed::Typed;
use crate::workload::{Namespace, OWNER_ANNOTATION, RUN_LABEL};

/// Time without renewal after which a run counts as dead for other runs.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(120);
/// Interval of renewals.
pub(super) const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// Time without renewal after which a run of this host without a process counts as dead. Before,
/// it may run on another host that looks like this one: on macOS, or on a copy of this machine.
const LOCAL_LEASE_DURATION: Duration = RENEW_INTERVAL.saturating_mul(3);
/// Name of the Lease.
pub(super) const LEASE_NAME: &str = "evictlab";
/// Annotation of the Lease; its value is the names of the nodes, separated by commas.
pub(super) const NODES_ANNOTATION: &str = "evictlab.dev/nodes";
/// Annotation of the Lease; its value is `claiming` or `holding`.
pub(super) const STATE_ANNOTATION: &str = "evictlab.dev/state";
/// State of a Lease whose nodes are in use.
pub(super) const HOLDING: &str = "holding";

/// The Lease of a run, as read from the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseRecord {
    /// Id of the run.
    pub(crate) run: String,
    /// Process that renews the Lease.
    pub(crate) owner: Option<Owner>,
    /// Nodes that the run claims or holds.
    pub(crate) nodes: BTreeSet<String>,
    /// True if the nodes are in use.
    pub(crate) is_holding: bool,
    /// Time of the last renewal, by the clock of the API server.
    pub(crate) renewed: Option<Timestamp>,
}

impl LeaseRecord {
    fn of(lease: &Lease) -> Self {
        let annotation = |name: &str| lease.annotations().get(name).map(String::as_str).unwrap_or_default();
        let nodes = annotation(NODES_ANNOTATION).split(',').filter(|name| !name.is_empty());
        let spec = lease.spec.as_ref();
        Self {
            run: lease.labels().get(RUN_LABEL).cloned().unwrap_or_default(),
            owner: serde_json::from_str(annotation(OWNER_ANNOTATION)).ok(),
            nodes: nodes.map(str::to_owned).collect(),
            is_holding: annotation(STATE_ANNOTATION) == HOLDING,
            renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0),
        }
    }

    /// Returns whether the run is active: its process runs on this host, or it renewed its Lease in
    /// the last [`LEASE_DURATION`]; in the last 30 s if its process should run on this host.
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        let lifetime = match self.owner.as_ref().filter(|owner| owner.is_local()) {
            Some(owner) if owner.is_alive() => return true,
            Some(_) => LOCAL_LEASE_DURATION,
            None => LEASE_DURATION,
        };
        self.renewed_ago(now).is_some_and(|ago| ago < lifetime)
    }

    /// Returns the time since the last renewal; zero if it is in the future, as far as clocks of
    /// API servers may differ. A later one is not a renewal.
    pub(crate) fn renewed_ago(&self, now: Timestamp) -> Option<Duration> {
        let ago = now.duration_since(self.renewed?);
        (ago > -SignedDuration::try_from(LEASE_DURATION).ok()?)
            .then(|| Duration::try_from(ago).unwrap_or_default())
    }
}

/// Lists the Leases of all runs: each has a name and a namespace as evictlab creates them. Copies
/// with the same labels, as of a backup, do not count.
///
/// # Errors
/// The API server refuses or does not answer.
pub(crate) async fn list_leases(client: &Client) -> Result<Vec<LeaseRecord>, kube::Error> {
    let api: Api<Typed<Lease>> = Api::all(client.clone());
    let listed = api.list(&ListParams::default().labels(RUN_LABEL)).await?;
    if listed.items.is_empty() {
        return Ok(Vec::new());
    }
    // Listed later: the namespace of a Lease is older than the Lease.
    let namespaces = Namespace::list_of_leases(client).await?;
    let is_of_run = |lease: &&Typed<Lease>| {
        let run = lease.labels().get(RUN_LABEL);
        lease.name_any() == LEASE_NAME
            && lease.namespace().is_some_and(|namespace| namespaces.get(&namespace) == run)
    };
    Ok(listed.items.iter().filter(is_of_run).map(|lease| LeaseRecord::of(lease)).collect())
}

/// Returns the runs whose Lease shows that they are active.
///
/// # Errors
/// The API server refuses or does not answer.
pub(crate) async fn active_runs(client: &Client) -> Result<BTreeSet<String>, kube::Error> {
    let now = ServerClock::read(client).await?.now();
    let leases = list_leases(client).await?;
    Ok(leases.into_iter().filter(|lease| lease.is_live(now)).map(|lease| lease.run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_active_by_its_process_or_by_its_renewals() {
        let now = Timestamp::now();
        let here = Owner::current();
        let dead = Owner { started: Some("earlier".to_owned()), ..here.clone() };
        let elsewhere = Owner { host: "another".to_owned(), ..here.clone() };
        let rows = [
            (&here, 500, true),
            (&dead, 1, true),
            (&dead, 29, true),
            (&dead, 31, false),
            (&elsewhere, 119, true),
            (&elsewhere, 121, false),
            (&elsewhere, -100, true),
            (&elsewhere, -3600, false),
        ];
        for (owner, seconds, expected) in rows {
            let renewed = Some(now - SignedDuration::from_secs(seconds));
            let lease = LeaseRecord { owner: Some(owner.clone()), renewed, ..LeaseRecord::default() };
            assert_eq!(lease.is_live(now), expected, "{owner:?} {seconds}");
        }
    }
}
