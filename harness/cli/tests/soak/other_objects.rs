//! Objects of others in the cluster, and whether they are as they were.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Namespaces of others; the second has a name like those of evictlab.
const NAMESPACES: [&str; 2] = ["theirs", "evictlab-theirs-1"];

/// Time for the pods of others to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The parts of objects that must not change, by kind and name.
type Snapshot = BTreeMap<String, Value>;

/// Objects of others in a cluster.
pub struct OtherObjects {
    client: Client,
    before: Snapshot,
}

impl OtherObjects {
    /// Creates namespaces with a Deployment, a pod on each of `nodes`, and a Lease. All pods have
    /// this container.
    pub async fn create(kubeconfig: &str, nodes: &[&str], container: &Value) -> Self {
        let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        for namespace in NAMESPACES {
            create::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": namespace}})).await;
            await_service_account(&client, namespace).await;
            let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
            for node in nodes {
                let spec =
                    json!({"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 1});
                create(&pods, json!({"metadata": {"name": format!("on-{node}")}, "spec": spec})).await;
            }
            // On the first node: a run puts the workers of a kind cluster under pressure.
            let spec = json!({"nodeName": nodes[0], "containers": [container]});
            let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
            let spec =
                json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
            let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
            create(&deployments, json!({"metadata": {"name": "web"}, "spec": spec})).await;
            let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
            // The name that evictlab gives to its own.
            let lease = json!({"metadata": {"name": "evictlab"}, "spec": {"holderIdentity": "them"}});
            create(&leases, lease).await;
        }
        await_running(&client, NAMESPACES.len() * (nodes.len() + 2)).await;
        let before = retried(async || snapshot(&client).await).await;
        Self { client, before }
    }

    /// Requires that the objects are as they were, and that runs left nothing. Returns their
    /// number.
    pub async fn assert_untouched(&self) -> usize {
        let now = retried(async || snapshot(&self.client).await).await;
        let changed: Vec<_> =
            self.before.iter().filter(|(name, object)| now.get(*name) != Some(object)).collect();
        assert!(changed.is_empty(), "objects of others were changed: {changed:#?}\nnow: {now:#?}");
        assert_eq!(now.len(), self.before.len(), "objects of others: {now:#?}");
        self.before.len()
    }

    /// Returns what runs left in the cluster.
    pub async fn leftovers(&self) -> Vec<String> {
        let ours = ListParams::default().labels("evictlab.dev/run");
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespaces = retried(async || namespaces.list(&ours).await).await;
        let leases: Api<Lease> = Api::all(self.client.clone());
        let leases = retried(async || leases.list(&ours).await).await;
        let pods: Api<Pod> = Api::all(self.client.clone());
        let pods = retried(async || pods.list(&ListParams::default()).await).await;
        let name = |metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
            format!("{}/{}", metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default())
        };
        let pods = pods.items.into_iter().filter(|pod| {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            namespace.starts_with("evictlab-") && !NAMESPACES.contains(&namespace)
        });
        let namespaces = namespaces.items.into_iter().map(|found| name(found.metadata));
        let leases = leases.items.into_iter().map(|found| name(found.metadata));
        namespaces.chain(leases).chain(pods.map(|found| name(found.metadata))).collect()
    }
}

async fn create<K: kube::Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug>(
    api: &Api<K>,
    object: Value,
) {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Pods are refused before a real cluster has created the service account of their namespace.
async fn await_service_account(client: &Client, namespace: &str) {
    let began = Instant::now();
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::namespaced(client.clone(), namespace);
    while accounts.get("default").await.is_err() {
        assert!(began.elapsed() < START_TIMEOUT, "no service account in {namespace}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until the pods run and nothing changes any more.
async fn await_running(client: &Client, count: usize) {
    let began = Instant::now();
    let mut last = Snapshot::new();
    loop {
        let mut running = 0;
        for namespace in NAMESPACES {
            let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let pods = retried(async || pods.list(&ListParams::default()).await).await.items;
            let phase = |pod: &Pod| pod.status.as_ref()?.phase.clone();
            running += pods.iter().filter(|pod| phase(pod).as_deref() == Some("Running")).count();
        }
        let now = retried(async || snapshot(client).await).await;
        if running == count && now == last {
            return;
        }
        assert!(began.elapsed() < START_TIMEOUT, "{running} of {count} pods of others run");
        last = now;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// Repeats a request while a fault of the cluster is active.
async fn retried<T>(request: impl AsyncFn() -> Result<T, kube::Error>) -> T {
    let began = Instant::now();
    loop {
        match request().await {
            Ok(answer) => return answer,
            Err(error) => assert!(began.elapsed() < START_TIMEOUT, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn snapshot(client: &Client) -> Result<Snapshot, kube::Error> {
    let mut all = Snapshot::new();
    for namespace in NAMESPACES {
        let own = Api::<Namespace>::all(client.clone()).get(namespace).await?;
        keep(&mut all, "namespace", &own);
        list::<Pod>(&mut all, "pod", Api::namespaced(client.clone(), namespace)).await?;
        list::<Deployment>(&mut all, "deployment", Api::namespaced(client.clone(), namespace)).await?;
        list::<Lease>(&mut all, "lease", Api::namespaced(client.clone(), namespace)).await?;
    }
    Ok(all)
}

async fn list<K>(all: &mut Snapshot, kind: &str, api: Api<K>) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    for object in api.list(&ListParams::default()).await?.items {
        keep(all, kind, &object);
    }
    Ok(())
}

/// Keeps uid, metadata and spec, and the resourceVersion of objects without conditions, which shows
/// any request that changed them.
fn keep(all: &mut Snapshot, kind: &str, object: &impl Serialize) {
    let object = serde_json::to_value(object).unwrap();
    let metadata = &object["metadata"];
    // Kubelets and controllers write the status of pods: on a busy host, nodes are not ready for a
    // while. A deletion shows in the metadata.
    let has_status = object.get("status").is_some_and(|status| status.get("conditions").is_some());
    let kept = json!({
        "uid": metadata["uid"],
        "resourceVersion": if has_status { &Value::Null } else { &metadata["resourceVersion"] },
        "deletionTimestamp": metadata["deletionTimestamp"],
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "spec": object["spec"],
    });
    all.insert(format!("{kind} {}/{}", metadata["namespace"], metadata["name"]), kept);
}
