//! Nodes with pods of runs that do not renew their Lease any more. These pods run until they are
//! deleted, or until their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::typed::Typed;
use crate::workload::{Namespace, has_not_ended};

/// Number of namespaces whose pods are listed at a time.
const MAX_LISTS: usize = 8;

/// Returns the nodes with pods of runs that are not among `active`, each with one of these runs.
/// Pods that have ended do not count.
///
/// # Errors
/// The API server refuses or does not answer.
pub(super) async fn nodes_with_pods_of_dead_runs(
    client: &Client,
    active: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, kube::Error> {
    let mut namespaces = Namespace::list_with_runs(client).await?;
    namespaces.retain(|_, run| !active.contains(run));
    let nodes_of = async |(namespace, run): (String, String)| {
        let pods: Api<Typed<Pod>> = Api::namespaced(client.clone(), &namespace);
        let listed = pods.list(&ListParams::default()).await?.items.into_iter();
        let nodes = listed.filter(|pod| has_not_ended(pod)).filter_map(|pod| pod.0.spec?.node_name);
        Ok::<_, kube::Error>(nodes.map(|node| (node, run.clone())).collect::<Vec<_>>())
    };
    let nodes: Vec<_> =
        stream::iter(namespaces.into_iter().map(nodes_of)).buffer_unordered(MAX_LISTS).try_collect().await?;
    Ok(nodes.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use evictlab_embedded::{Cluster, ClusterOptions, NodeOptions};
    use jiff::Timestamp;
    use serde_json::json;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;
    use crate::node::wait_until_ready;
    use crate::run_lease::RunLease;
    use crate::workload::NamespacePurpose;

    /// A killed run leaves pods, which take memory of their nodes until their deadlines.
    #[tokio::test(start_paused = true)]
    async fn a_run_does_not_take_nodes_with_pods_of_a_dead_run() {
        let node = |name: &str| NodeOptions::new(name.to_owned(), "v1.32.13".parse().unwrap());
        let options = ClusterOptions::new(0, Timestamp::UNIX_EPOCH, vec![node("a"), node("b")]);
        let cluster = Cluster::new(options).unwrap();
        let client = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await }));
        wait_until_ready(&client, 2).await.unwrap();
        let create =
            async |run, purpose| Namespace::create(&client, run, purpose, Default::default()).await.unwrap();
        let of_dead = create("dead", NamespacePurpose::Pods("case")).await;
        for (name, node, command) in [("hog", "a", "sleep 600"), ("done", "b", "exit 0")] {
            let container = json!({"name": "c", "image": "agnhost:2.52", "command": ["sh", "-c", command]});
            let spec = json!({"nodeName": node, "restartPolicy": "Never", "containers": [container]});
            of_dead.create_pod(&json!({"metadata": {"name": name}, "spec": spec})).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(60)).await;

        let lease = RunLease::create(&create("new", NamespacePurpose::Lease).await, "new").await.unwrap();
        let wanted = ["a", "b"].map(str::to_owned).into();
        let any = |free: &BTreeSet<String>| (!free.is_empty()).then(|| free.clone());
        let held = lease.hold(&wanted, any, &|_| {}).await.unwrap();
        assert_eq!(held.held, ["b".to_owned()].into());
        assert_eq!(held.used_by_others.into_keys().collect::<Vec<_>>(), ["a"]);

        let steps = RefCell::new(Vec::new());
        let (both, step) = (
            |free: &BTreeSet<String>| (free.len() == 2).then(|| free.clone()),
            |text: &str| {
                steps.borrow_mut().push(text.to_owned());
            },
        );
        let delete = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            of_dead.delete(Duration::from_secs(60)).await.unwrap();
        };
        let (held, ()) = tokio::join!(lease.hold(&wanted, both, &step), delete);
        assert_eq!(held.unwrap().held, wanted);
        let waiting = "waiting for a, which has pods of run dead, which is dead: \
                       `evictlab gc --backend existing --run dead` removes them";
        assert_eq!(*steps.borrow(), [waiting]);
    }
}
