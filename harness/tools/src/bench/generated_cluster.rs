//! An API server with generated nodes and pods, of any size: as much of the API as `evictlab watch`
//! uses.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// Placeholder in templates for the name of a node.
const NODE: &str = "NODE-NAME";
/// Placeholder in templates for the number of a pod.
const POD: &str = "POD-NUMBER";

/// A served cluster. Dropping it ends the server.
pub(super) struct GeneratedCluster {
    kubeconfig: NamedTempFile,
    objects: Arc<Objects>,
    _server: AbortOnDropHandle<()>,
}

/// The objects of the cluster, generated for each request.
struct Objects {
    nodes: usize,
    pods_per_node: usize,
    node: String,
    pod: String,
    pod_stats: String,
    /// Number of Summaries that were requested.
    summaries: AtomicUsize,
    /// Number of pods in all lists.
    listed_pods: AtomicUsize,
}

impl GeneratedCluster {
    /// Serves a cluster on the loopback interface.
    ///
    /// # Errors
    /// Those of the listener and of the kubeconfig, a temporary file.
    pub(super) async fn serve(nodes: usize, pods_per_node: usize) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let kubeconfig = NamedTempFile::new()?;
        let server = format!("http://{}", listener.local_addr()?);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "generated",
            "clusters": [{"name": "generated", "cluster": {"server": server}}],
            "users": [{"name": "generated", "user": {}}],
            "contexts": [{"name": "generated", "context": {"cluster": "generated", "user": "generated"}}],
        });
        std::fs::write(kubeconfig.path(), config.to_string())?;
        let objects = Arc::new(Objects {
            nodes,
            pods_per_node,
            node: node().to_string(),
            pod: pod().to_string(),
            pod_stats: pod_stats().to_string(),
            summaries: AtomicUsize::new(0),
            listed_pods: AtomicUsize::new(0),
        });
        let answering = objects.clone();
        let router = Router::new().fallback(move |uri: Uri| {
            let answering = answering.clone();
            async move { answering.answer(&uri) }
        });
        let server = AbortOnDropHandle::new(tokio::spawn(async move {
            // It ends with the handle.
            let _ended = axum::serve(listener, router).await;
        }));
        Ok(Self { kubeconfig, objects, _server: server })
    }

    /// Path of the kubeconfig.
    pub(super) fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// Number of nodes that were queried so far.
    pub(super) fn queries(&self) -> usize {
        self.objects.summaries.load(Ordering::Relaxed)
    }
}

impl Objects {
    fn answer(&self, uri: &Uri) -> Response {
        let query = uri.query().unwrap_or_default();
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if parameter("watch").is_some() {
            // Nothing changes.
            return Body::from_stream(stream::pending::<io::Result<Vec<u8>>>()).into_response();
        }
        let number = |name: &str| parameter(name).and_then(|value| value.parse().ok());
        let (start, limit) = (number("continue").unwrap_or(0), number("limit"));
        match uri.path().strip_prefix("/api/v1/").unwrap_or_default() {
            "nodes" => list("NodeList", self.nodes, start, limit, |nth| fill(&self.node, &node_name(nth), 0)),
            "pods" => {
                let on =
                    parameter("fieldSelector").and_then(|selector| selector.strip_prefix("spec.nodeName%3D"));
                let (first, count) = match on {
                    Some(node) => (node_number(node) * self.pods_per_node, self.pods_per_node),
                    None => (0, self.nodes * self.pods_per_node),
                };
                list("PodList", count, start, limit, |nth| {
                    self.listed_pods.fetch_add(1, Ordering::Relaxed);
                    fill(&self.pod, &node_name((first + nth) / self.pods_per_node), first + nth)
                })
            }
            "events" => list("EventList", 0, start, limit, |_| String::new()),
            path => match path.strip_prefix("nodes/").and_then(|path| path.split_once("/proxy/")) {
                Some((node, "stats/summary")) => self.summary(node),
                Some((_, "configz")) => answer(StatusCode::OK, config().to_string()),
                _ => answer(StatusCode::NOT_FOUND, json!({"kind": "Status", "code": 404}).to_string()),
            },
        }
    }

    fn summary(&self, node: &str) -> Response {
        self.summaries.fetch_add(1, Ordering::Relaxed);
        let first = node_number(node) * self.pods_per_node;
        let pods = (first..first + self.pods_per_node).map(|nth| fill(&self.pod_stats, node, nth));
        let pods = pods.collect::<Vec<_>>().join(",");
        answer(StatusCode::OK, format!(r#"{{"node":{},"pods":[{pods}]}}"#, node_stats()))
    }
}

/// Returns a page, which starts at an index.
fn list(
    kind: &str,
    count: usize,
    start: usize,
    limit: Option<usize>,
    item: impl Fn(usize) -> String,
) -> Response {
    let end = limit.map_or(count, |limit| count.min(start + limit));
    let next = if end < count { end.to_string() } else { String::new() };
    let items = (start..end).map(item).collect::<Vec<_>>().join(",");
    let metadata = json!({"resourceVersion": "1", "continue": next});
    let text = format!(r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{metadata},"items":[{items}]}}"#);
    answer(StatusCode::OK, text)
}

fn answer(status: StatusCode, json: String) -> Response {
    (status, [("content-type", "application/json")], json).into_response()
}

fn node_name(nth: usize) -> String {
    format!("node-{nth}")
}

fn node_number(name: &str) -> usize {
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

fn fill(template: &str, node: &str, pod: usize) -> String {
    template.replace(NODE, node).replace(POD, &pod.to_string())
}

/// A node with as many images as a kubelet reports.
fn node() -> Value {
    let image = |nth: usize| json!({"names": [format!("registry.k8s.io/image@sha256:{nth:064}"), format!("registry.k8s.io/image:{nth}")], "sizeBytes": 100_000_000 + nth});
    let info = json!({"kubeletVersion": "v1.33.5", "operatingSystem": "linux", "architecture": "amd64", "bootID": "boot-NODE-NAME",
        "containerRuntimeVersion": "containerd://2.1.4", "kernelVersion": "6.8.0", "kubeProxyVersion": "", "machineID": "machine-NODE-NAME",
        "osImage": "Debian GNU/Linux 12 (bookworm)", "systemUUID": "system-NODE-NAME"});
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "KubeletHasSufficientMemory", "message": "kubelet has sufficient memory available",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "metadata": {"name": NODE, "uid": "uid-NODE-NAME", "resourceVersion": "1",
            "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "a"}},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": "generated://NODE-NAME"},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "allocatable": {"cpu": "8", "memory": "31Gi", "pods": "110"},
            "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("PIDPressure", "False"), condition("Ready", "True")],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": NODE}],
            "nodeInfo": info, "images": (0..50).map(image).collect::<Vec<_>>(),
        },
    })
}

/// A pod of a Deployment with two containers, with the fields that an API server returns.
fn pod() -> Value {
    let name = "web-5d8f9c7b6d-POD-NUMBER";
    let mounts = json!([{"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}]);
    let container = |name: &str, memory: &str| {
        json!({"name": name, "image": "registry.example/team/web:1.2.3", "args": ["--listen=:8080", "--log-level=info"],
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}, {"name": "MODE", "value": "production"}],
            "resources": {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": "1Gi"}}, "volumeMounts": mounts,
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"})
    };
    let status = |name: &str| {
        json!({"name": name, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "lastState": {}, "ready": true, "restartCount": 0, "started": true,
            "image": "registry.example/team/web:1.2.3", "imageID": format!("registry.example/team/web@sha256:{:064}", 1), "containerID": format!("containerd://{:064}", 1)})
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let toleration = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    let managed = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
    let managed_spec = json!({"f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}}, "f:ownerReferences": {".": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:args": {}, "f:env": {}, "f:image": {}, "f:resources": {}}}, "f:restartPolicy": {}}});
    let managed_status = json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}, "f:containerStatuses": {}, "f:phase": {}, "f:podIP": {}}});
    json!({
        "metadata": {"name": name, "generateName": "web-5d8f9c7b6d-", "namespace": "team", "uid": "uid-POD-NUMBER", "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web", "pod-template-hash": "5d8f9c7b6d", "team": "one"},
            "annotations": {"prometheus.io/scrape": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d8f9c7b6d", "uid": "uid-set", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [managed("kube-controller-manager", managed_spec), managed("kubelet", managed_status)]},
        "spec": {"nodeName": NODE, "containers": [container("web", "256Mi"), container("proxy", "64Mi")],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "default", "schedulerName": "default-scheduler",
            "tolerations": [toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")],
            "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority"},
        "status": {"phase": "Running", "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [status("web"), status("proxy")], "qosClass": "Burstable"},
    })
}

fn memory() -> Value {
    json!({"time": "2026-01-01T00:00:00Z", "availableBytes": 20_000_000_000_u64, "usageBytes": 300_000_000, "workingSetBytes": 250_000_000, "rssBytes": 200_000_000, "pageFaults": 1, "majorPageFaults": 0})
}

fn filesystem() -> Value {
    json!({"time": "2026-01-01T00:00:00Z", "availableBytes": 50_000_000_000_u64, "capacityBytes": 100_000_000_000_u64, "usedBytes": 1_000_000, "inodesFree": 5_000_000, "inodes": 6_000_000, "inodesUsed": 100})
}

fn node_stats() -> Value {
    json!({"nodeName": NODE, "startTime": "2026-01-01T00:00:00Z", "memory": memory(), "fs": filesystem(),
        "runtime": {"imageFs": filesystem(), "containerFs": filesystem()}, "rlimit": {"time": "2026-01-01T00:00:00Z", "maxpid": 32768, "curproc": 400}})
}

fn pod_stats() -> Value {
    let container = |name: &str| {
        json!({"name": name, "startTime": "2026-01-01T00:00:00Z", "cpu": {"time": "2026-01-01T00:00:00Z", "usageNanoCores": 1, "usageCoreNanoSeconds": 1},
            "memory": memory(), "rootfs": filesystem(), "logs": filesystem()})
    };
    json!({"podRef": {"name": "web-5d8f9c7b6d-POD-NUMBER", "namespace": "team", "uid": "uid-POD-NUMBER"}, "startTime": "2026-01-01T00:00:00Z",
        "containers": [container("web"), container("proxy")], "memory": memory(), "ephemeral-storage": filesystem(), "process_stats": {"process_count": 3}})
}

fn config() -> Value {
    json!({"kubeletconfig": {"evictionHard": {"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%"}}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{WatchOptions, inspect};
    use evictlab_cluster::ClusterAccess;
    use evictlab_rules::threshold::Signal;
    use std::time::Duration;

    #[tokio::test]
    async fn the_watch_reads_all_pods_of_the_generated_nodes() {
        let cluster = GeneratedCluster::serve(3, 400).await.unwrap();
        let access = ClusterAccess { kubeconfig: Some(cluster.kubeconfig().to_owned()), context: None };
        let client = access.connect().await.unwrap();
        let options = WatchOptions {
            nodes: Vec::new(),
            selector: None,
            signal: Signal::MemoryAvailable,
            interval: Duration::from_secs(2),
        };
        let nodes = inspect(&client, &options).await.unwrap();
        let ranked = nodes.iter().map(|node| (node.name.as_str(), node.reading.as_ref().unwrap()));
        let ranked: Vec<_> = ranked.map(|(name, reading)| (name, reading.order.len())).collect();
        assert_eq!(ranked, [("node-0", 400), ("node-1", 400), ("node-2", 400)]);
        let last = &nodes[2].reading.as_ref().unwrap().order[0];
        assert!(last.reason.contains("requests 320Mi"), "{last:?}");
        assert_eq!(cluster.queries(), 3);
        let listed = cluster.objects.listed_pods.load(Ordering::Relaxed);
        assert_eq!(listed, 3 * 400, "a watch reads each pod once, not all pods for each node");
    }
}
