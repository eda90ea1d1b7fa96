//! Namespaces of runs in an existing cluster: listing and deleting them by their run label.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::Client;

use super::access::ClusterAccess;
use super::client::ClusterClient;
use super::request_limit::MAX_REQUESTS;
use crate::error::ExistingError;
use crate::owner::{ABANDONED_AFTER, Owner};
use crate::run_lease::{LeaseRecord, ServerClock, list_leases};
use crate::wait::{self, Poll};
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
    pub left_alone: Option<String>,
}

/// Lists the runs with namespaces in a cluster; returns the name of the cluster, too.
pub async fn leftovers(access: &ClusterAccess) -> Result<(String, Vec<Leftover>), ExistingError> {
    let cluster = access.connect().await?;
    let leftovers = list_leftovers(&cluster).await?;
    Ok((cluster.name, leftovers))
}

/// Deletes the namespaces of a run; returns their number.
pub async fn collect_leftovers(access: &ClusterAccess, run: &str) -> Result<usize, ExistingError> {
    let cluster = access.connect().await?;
    delete_namespaces(&cluster.client, &cluster.name, run).await
}

/// Deletes the namespaces of a run, waits until they are gone, and returns their number. The
/// namespace with the run's Lease is the last one, so that the run holds its nodes until its pods
/// are gone.
pub(super) async fn delete_namespaces(
    client: &Client,
    cluster: &str,
    run: &str,
) -> Result<usize, ExistingError> {
    let all = Namespace::list(client, Some(run)).await?;
    let count = all.len();
    let (last, first): (Vec<_>, Vec<_>) = all.into_iter().partition(|namespace| namespace.has_lease);
    for namespaces in [first, last] {
        let deletions = namespaces.iter().map(|namespace| namespace.delete(DELETION_TIMEOUT));
        stream::iter(deletions).buffer_unordered(MAX_REQUESTS).try_collect::<()>().await?;
    }
    wait::until(DELETION_TIMEOUT, Duration::from_millis(500), async || {
        match Namespace::list_obstacles(client, run).await {
            Err(error) => Poll::Pending(error.to_string()),
            Ok(remaining) if remaining.is_empty() => Poll::Done(()),
            Ok(remaining) => Poll::Pending(remaining.join(", ")),
        }
    })
    .await
    .map_err(|stalled| ExistingError::NamespacesRemain { cluster: cluster.to_owned(), stalled })?;
    Ok(count)
}

/// Lists the runs with namespaces in a cluster.
pub(super) async fn list_leftovers(cluster: &ClusterClient) -> Result<Vec<Leftover>, ExistingError> {
    let mut runs: BTreeMap<String, Vec<NamespaceRecord>> = BTreeMap::new();
    for record in Namespace::list_records(&cluster.client).await? {
        runs.entry(record.run.clone()).or_default().push(record);
    }
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let leases = list_leases(&cluster.client).await.map_err(|error| cluster.error("list Leases", &error))?;
    let clock = ServerClock::read(&cluster.client).await;
    let now = clock.map_err(|error| cluster.error("read the clock", &error))?.now();
    let leftover = |(run, records): (String, Vec<NamespaceRecord>)| {
        let of_run = leases.iter().filter(|lease| lease.run == run);
        let lease = of_run.max_by_key(|lease| (lease.is_live(now), lease.renewed));
        let left_alone = records.iter().find_map(|record| keep_reason(record, lease, now));
        Leftover { run, namespaces: records.len(), left_alone }
    };
    Ok(runs.into_iter().map(leftover).collect())
}

/// Reason to keep a namespace: its run is active, or may be active, by its process or its Lease.
fn keep_reason(record: &NamespaceRecord, lease: Option<&LeaseRecord>, now: Timestamp) -> Option<String> {
    let local = record.owner.as_ref().filter(|owner| owner.is_local());
    if local.is_some_and(Owner::is_alive) {
        return Some("its run is active".to_owned());
    }
    if let Some(lease) = lease {
        let seconds = lease.renewed_ago(now).unwrap_or_default().as_secs();
        let reason = match local {
            Some(_) => "its process has ended, but its Lease counts for 30 s: it was renewed",
            None => "its run renewed its Lease",
        };
        return lease.is_live(now).then(|| format!("{reason} {seconds} s ago"));
    }
    if local.is_some() {
        return None;
    }
    let age = record.created.and_then(|created| Duration::try_from(now.duration_since(created)).ok());
    let is_old = age.is_some_and(|age| age > ABANDONED_AFTER);
    (!is_old).then(|| "it has no Lease, and it is less than 12 hours old: --force removes it".to_owned())
}

#[cfg(test)]
mod tests {
    use evictlab_embedded::{ClusterOptions, FaultScope, NodeOptions};
    use serde_json::json;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;
    use crate::node::wait_until_ready;
    use crate::workload::NamespacePurpose;

    #[test]
    fn keeps_namespaces_of_runs_that_may_be_active() {
        let here = Owner::current();
        let dead = Owner { started: Some("earlier".to_owned()), ..here.clone() };
        let elsewhere = Owner { host: "another".to_owned(), ..here.clone() };
        let contained = Owner { scope: "boot pid:[1]".to_owned(), ..dead.clone() };
        let now = Timestamp::now();
        let ago = |seconds: i64| Some(now - jiff::SignedDuration::from_secs(seconds));
        let hour = 3600;
        let no_lease = Some("it has no Lease, and it is less than 12 hours old: --force removes it");
        // Owner, age of the namespace, and time since the renewal of the Lease.
        let rows = [
            (Some(&here), ago(20 * hour), None, Some("its run is active")),
            (
                Some(&dead),
                ago(0),
                Some(1),
                Some("its process has ended, but its Lease counts for 30 s: it was renewed 1 s ago"),
            ),
            (Some(&dead), ago(0), Some(31), None),
            (Some(&dead), ago(0), None, None),
            (Some(&elsewhere), ago(hour), Some(119), Some("its run renewed its Lease 119 s ago")),
            (Some(&elsewhere), ago(20 * hour), Some(5), Some("its run renewed its Lease 5 s ago")),
            (Some(&elsewhere), ago(hour), Some(121), None),
            (Some(&contained), ago(hour), Some(10), Some("its run renewed its Lease 10 s ago")),
            (Some(&contained), ago(hour), Some(500), None),
            (Some(&elsewhere), ago(11 * hour), None, no_lease),
            (Some(&elsewhere), ago(13 * hour), None, None),
            (None, ago(hour), None, no_lease),
            (None, None, None, no_lease),
        ];
        for (owner, created, renewed, expected) in rows {
            let lease = renewed.map(|seconds| LeaseRecord {
                renewed: ago(seconds),
                owner: owner.cloned(),
                ..LeaseRecord::default()
            });
            let record = NamespaceRecord { run: "r".to_owned(), owner: owner.cloned(), created };
            assert_eq!(
                keep_reason(&record, lease.as_ref(), now).as_deref(),
                expected,
                "{owner:?} {renewed:?}"
            );
        }
    }

    /// Copies of a Lease, as in a backup, decide nothing: the first is that of a live run and not
    /// renewed, the second that of a dead run and of the future.
    #[tokio::test(start_paused = true)]
    async fn only_the_lease_of_the_run_itself_counts() {
        let (_cluster, client, ..) = cluster_with_a_pod().await;
        let elsewhere = Owner { host: "another".to_owned(), ..Owner::current() };
        let annotations = json!({"evictlab.dev/owner": serde_json::to_string(&elsewhere).unwrap()});
        let create_namespace = async |name: &str, labels: serde_json::Value| {
            let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
            let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
            let object = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            namespaces.create(&Default::default(), &object).await.unwrap();
        };
        let create_lease = async |namespace: &str, name: &str, run: &str, seconds: i64| {
            let renewed = Timestamp::now() - jiff::SignedDuration::from_secs(seconds);
            let labels = json!({"evictlab.dev/run": run});
            let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
            let spec =
                json!({"renewTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(renewed)});
            let leases =
                kube::Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(client.clone(), namespace);
            let object = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            leases.create(&Default::default(), &object).await.unwrap();
        };
        create_namespace("a", json!({})).await;
        for (run, seconds) in [("dead", 500), ("live", 1)] {
            let namespace = format!("evictlab-nodes-{run}");
            let labels = json!({"evictlab.dev/run": run, "evictlab.dev/lease": "true"});
            create_namespace(&namespace, labels).await;
            create_lease(&namespace, "evictlab", run, seconds).await;
            create_lease(&namespace, "a", run, -5).await;
        }
        create_lease("a", "evictlab", "live", 500).await;
        create_lease("a", "b", "dead", -5).await;
        let cluster = ClusterClient { name: "c".to_owned(), server: String::new(), client: client.clone() };
        let found = list_leftovers(&cluster).await.unwrap();
        let is_kept = |run: &str| found.iter().find(|found| found.run == run).unwrap().left_alone.is_some();
        assert_eq!([is_kept("dead"), is_kept("live")], [false, true], "{found:?}");
    }

    /// A cluster with one node, and a pod in a namespace of the run `r`.
    async fn cluster_with_a_pod() -> (evictlab_embedded::Cluster, Client, Namespace, AbortOnDropHandle<()>) {
        let node = NodeOptions::new("a".to_owned(), "v1.32.13".parse().unwrap());
        let options = ClusterOptions::new(0, Timestamp::UNIX_EPOCH, vec![node]);
        let cluster = evictlab_embedded::Cluster::new(options).unwrap();
        let client = Client::new(cluster.router(), "default");
        let driven = cluster.clone();
        let driver = AbortOnDropHandle::new(tokio::spawn(async move { driven.drive().await }));
        wait_until_ready(&client, 1).await.unwrap();
        let namespace = Namespace::create(&client, "r", NamespacePurpose::Pods("nodes"), Default::default())
            .await
            .unwrap();
        let container = json!({"name": "c", "image": "agnhost:2.52", "command": ["sleep", "infinity"]});
        let spec = json!({"nodeName": "a", "containers": [container]});
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        namespace.create_pod(&pod).await.unwrap();
        (cluster, client, namespace, driver)
    }

    /// The namespace of a case is deleted before that of the Lease, whatever the name of the case.
    #[tokio::test(start_paused = true)]
    async fn only_the_namespace_of_the_lease_is_deleted_last() {
        let (_cluster, client, of_case, _driver) = cluster_with_a_pod().await;
        assert!(of_case.name.starts_with("evictlab-nodes-"), "{}", of_case.name);
        let of_lease =
            Namespace::create(&client, "r", NamespacePurpose::Lease, Default::default()).await.unwrap();
        let listed = Namespace::list(&client, Some("r")).await.unwrap();
        let holders: Vec<&str> =
            listed.iter().filter(|namespace| namespace.has_lease).map(|found| found.name.as_str()).collect();
        assert_eq!((listed.len(), holders), (2, vec![of_lease.name.as_str()]));
    }

    /// Something in the cluster adds finalizers to pods, as controllers of jobs or of backups do.
    #[tokio::test(start_paused = true)]
    async fn a_finalizer_that_keeps_a_pod_is_named() {
        let (_cluster, client, namespace, _driver) = cluster_with_a_pod().await;
        let pods = kube::Api::<k8s_openapi::api::core::v1::Pod>::namespaced(client.clone(), &namespace.name);
        let patch = kube::api::Patch::Merge(json!({"metadata": {"finalizers": ["example.com/keep"]}}));
        pods.patch("p", &Default::default(), &patch).await.unwrap();
        let error = delete_namespaces(&client, "cluster", "r").await.unwrap_err().to_string();
        assert!(error.contains("p (kept by the finalizers example.com/keep)"), "{error}");
        let patch = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
        pods.patch("p", &Default::default(), &patch).await.unwrap();
        assert_eq!(delete_namespaces(&client, "cluster", "r").await.unwrap(), 1);
    }

    /// The kubelet cannot end the pods of a node that died.
    #[tokio::test(start_paused = true)]
    async fn namespaces_with_pods_on_a_dead_node_are_removed() {
        let (cluster, client, namespace, _driver) = cluster_with_a_pod().await;
        let faults = evictlab_fault::parse("node-gone: {}").unwrap();
        let scope = FaultScope { namespace: Some(namespace.name.clone()), node: Some("a".to_owned()) };
        cluster.inject_faults(&faults, &scope);
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(wait_until_ready(&client, 1).await.is_err(), "the node is dead");
        // A user copied the label with a manifest.
        let copied = json!({"metadata": {"name": "prod", "labels": {"evictlab.dev/run": "r"}}});
        let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
        namespaces.create(&Default::default(), &serde_json::from_value(copied).unwrap()).await.unwrap();
        assert_eq!(delete_namespaces(&client, "cluster", "r").await.unwrap(), 1);
        assert!(namespaces.get("prod").await.is_ok());
        assert!(Namespace::list_records(&client).await.unwrap().is_empty());
    }
}
