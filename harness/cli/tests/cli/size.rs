//! Runs on many nodes, and clients that keep a served cluster busy.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use evictlab_embedded::{Cluster, ClusterOptions, NodeOptions};
use evictlab_rules::KubeletVersion;
use jiff::Timestamp;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Cases that share their node with others, and evict no pod.
const CASES: [&str; 2] = ["message/ephemeral-resources-are-refused", "relatives/graceful-delete"];

/// The requests that a server answers at the same time.
#[derive(Default)]
struct Concurrency {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A cluster of many nodes, whose server counts requests, and fails for two nodes.
struct LargeCluster {
    folder: TempDir,
    requests: Arc<Concurrency>,
    _runtime: Runtime,
}

/// Writes a kubeconfig for an API server without credentials.
pub(crate) fn write_kubeconfig(path: &Path, server: &str) {
    let kubeconfig = json!({
        "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "c", "user": {}}],
    });
    fs::write(path, kubeconfig.to_string()).unwrap();
}

impl LargeCluster {
    /// Serves nodes `n0`, `n1`… The API server rejects the pods on `n1`, and does not reach the
    /// kubelet of `n2`.
    fn serve(nodes: usize) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let node = |nth: usize| NodeOptions::new(format!("n{nth}"), KubeletVersion::from_minor(33));
        let options = ClusterOptions::new(7, Timestamp::now(), (0..nodes).map(node).collect());
        let cluster = Cluster::new(options).unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        write_kubeconfig(&folder.path().join("kubeconfig"), &server);
        let requests = Arc::new(Concurrency::default());
        let counted = requests.clone();
        let router: Router = cluster.router().layer(from_fn(fail));
        let router =
            router.layer(from_fn(move |request: Request, next: Next| count(counted.clone(), request, next)));
        runtime.spawn(async move { cluster.drive().await });
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { folder, requests, _runtime: runtime }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.args([
            "run",
            "--backend",
            "existing",
            "--kubeconfig",
            "kubeconfig",
            "--output-dir",
            "results",
        ]);
        command.args(arguments).output().unwrap()
    }

    fn events(&self) -> Vec<Value> {
        let events = fs::read_to_string(self.folder.path().join("results/artifacts/events.jsonl")).unwrap();
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Counts the requests without a response. They take a while, so that they overlap.
async fn count(requests: Arc<Concurrency>, request: Request, next: Next) -> Response {
    let now = requests.now.fetch_add(1, Ordering::SeqCst) + 1;
    requests.most.fetch_max(now, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let response = next.run(request).await;
    requests.now.fetch_sub(1, Ordering::SeqCst);
    response
}

async fn fail(request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/api/v1/nodes/n2/proxy/") {
        return (StatusCode::SERVICE_UNAVAILABLE, "the kubelet of n2 does not answer").into_response();
    }
    let creates_pod = request.method() == Method::POST && request.uri().path().ends_with("/pods");
    if !creates_pod {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let pod = to_bytes(body, usize::MAX).await.unwrap();
    if serde_json::from_slice::<Value>(&pod).unwrap()["spec"]["nodeName"] == "n1" {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "no pods on n1", "reason": "Forbidden", "code": 403});
        return (StatusCode::FORBIDDEN, [("content-type", "application/json")], status.to_string())
            .into_response();
    }
    next.run(Request::from_parts(parts, Body::from(pod))).await
}

#[test]
fn prepares_many_nodes_with_few_requests_and_without_bad_nodes() {
    const NODES: usize = 60;
    let cluster = LargeCluster::serve(NODES);
    let [one, other] = CASES;
    let run = cluster.run(&[one, other, "--node-selector", "kubernetes.io/os=linux"]);
    let [out, err] = [run.stdout, run.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(run.status.code(), Some(0), "{out}{err}");
    let most = cluster.requests.most.load(Ordering::SeqCst);
    assert!((17..=32).contains(&most), "{most} requests at a time");
    for bad in [
        "n1 is not used: failed to create pod look-n1: the API server rejected it: no pods on n1",
        "n2 is not used: ",
    ] {
        assert!(out.contains(bad), "{bad}: {out}");
    }
    let events = cluster.events();
    let ready = events.iter().find(|event| event["type"] == "cluster-ready").unwrap();
    assert_eq!(ready["nodes"].as_array().unwrap().len(), NODES - 2);
    let started = events.iter().filter(|event| event["type"] == "case-started");
    let nodes: BTreeSet<&str> = started.map(|event| event["node"].as_str().unwrap()).collect();
    assert_eq!(nodes.len(), CASES.len(), "cases share a node although others are free: {nodes:?}");
}

/// Starts a server of an embedded cluster that may open this number of files; returns the process
/// and its kubeconfig.
fn serve_with_files(folder: &Path, files: u32) -> (std::process::Child, PathBuf) {
    let script = format!("ulimit -n {files} && exec \"$0\" cluster create --kubelet v1.33");
    let mut server = Command::new("/bin/sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_evictlab")])
        .current_dir(folder)
        .env("EVICTLAB_STATE_DIR", folder.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let kubeconfig =
        lines.find_map(|line| line.unwrap().strip_prefix("export KUBECONFIG=").map(PathBuf::from));
    (server, kubeconfig.unwrap())
}

#[test]
fn idle_connections_do_not_lock_others_out() {
    const CONNECTIONS: u64 = 1100;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < 2 * CONNECTIONS) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(2 * CONNECTIONS), maximum }).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut server, kubeconfig) = serve_with_files(folder.path(), 1024);
    let text = fs::read_to_string(&kubeconfig).unwrap();
    let address = text.lines().find_map(|line| line.trim().strip_prefix("server: https://")).unwrap();
    let _idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut client = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    client.args(["watch", "--once", "--kubeconfig"]).arg(&kubeconfig).stdin(Stdio::null());
    let answered = client.output().unwrap();
    kill_process(Pid::from_child(&server), Signal::INT).unwrap();
    server.wait().unwrap();
    let error = String::from_utf8_lossy(&answered.stderr);
    assert!(answered.status.success(), "{error}");
    assert!(String::from_utf8_lossy(&answered.stdout).contains("v1-33-worker"));
}
