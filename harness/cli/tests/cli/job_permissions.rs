//! The ClusterRole of `evictlab job manifest` on a cluster whose API server enforces it: it is
//! sufficient, and every permission in it is used.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use evictlab_embedded::{Cluster, ClusterOptions, NodeOptions};
use evictlab_rules::KubeletVersion;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::size::write_kubeconfig;

/// Cases that need all permissions, and put no node under pressure.
const CASES: [&str; 5] = [
    "message/ephemeral-resources-are-refused",
    "relatives/api-eviction",
    "relatives/lifted-budget-allows-the-eviction",
    "end-state/deployment-replaces-the-evicted",
    "mine/job.yaml",
];
/// A case with a Job, a log and a resize: those of the catalogue need pressure.
const JOB: &str = r#"
name: job
about: A Job completes, and a pod is resized.
placed: scheduled
pods:
  - metadata: {name: printer}
    spec:
      restartPolicy: Never
      containers:
        - name: c
          image: agnhost:2.52
          command: [sh, -c, "echo printed"]
          resources: {limits: {ephemeral-storage: 1Mi}}
  - metadata: {name: resized}
    spec:
      containers:
        - name: c
          image: agnhost:2.52
          args: [pause]
          resources: {requests: {memory: 1Mi}, limits: {memory: 8Mi, ephemeral-storage: 1Mi}}
objects:
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: done}
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: "agnhost:2.52", command: [sh, -c, "true"]}]
do: [{when: running(pods.resized), resize: {pod: resized, requests: {memory: 2Mi}}}]
until: >-
  podList.filter(pod, pod.status.phase == 'Succeeded').size() == 2
  && container(pods.resized, 'c').allocatedResources.memory == '2Mi'
expect:
  that: [{what: output, value: "logs.printer.c.contains('printed')"}]
"#;

/// Verb and resource, such as `get pods/log` or `create jobs.batch`.
type Granted = BTreeSet<String>;

/// The permissions in the ClusterRole of a manifest.
fn granted() -> Granted {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_evictlab"))
        .current_dir(folder.path())
        .args(["job", "manifest", "--node-selector", "a=b"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text).map(|one| Value::deserialize(one).unwrap());
    let role = documents.into_iter().find(|object| object["kind"] == "ClusterRole").unwrap();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let rules = role["rules"].as_array().unwrap().iter().flat_map(|rule| {
        let (group, resource) = (texts(&rule["apiGroups"])[0].clone(), texts(&rule["resources"])[0].clone());
        let resource = if group.is_empty() { resource } else { format!("{resource}.{group}") };
        texts(&rule["verbs"]).into_iter().map(move |verb| format!("{verb} {resource}"))
    });
    rules.collect()
}

/// The permission that a request needs (`RequestInfoFactory` of the API server); `None` for paths
/// that everybody may read.
fn needed(request: &Request) -> Option<String> {
    let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let (group, rest) = match path[..] {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (resource, name, subresource) = match rest {
        [] => return None,
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some(*name), None),
        [resource, name, subresource, ..] => (*resource, Some(*name), Some(*subresource)),
    };
    let query = request.uri().query().unwrap_or_default();
    let verb = match *request.method() {
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::PUT => "update",
        Method::DELETE if name.is_none() => "deletecollection",
        Method::DELETE => "delete",
        _ if query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1") => "watch",
        _ if name.is_none() => "list",
        _ => "get",
    };
    let subresource = subresource.map(|name| format!("/{name}")).unwrap_or_default();
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    Some(format!("{verb} {resource}{subresource}{group}"))
}

/// Answers a request if it is permitted, and records the permission.
async fn authorize(
    granted: Arc<Granted>,
    used: Arc<Mutex<Granted>>,
    request: Request,
    next: Next,
) -> Response {
    // Every authenticated user may ask for its own permissions.
    let needed = needed(&request).filter(|needed| !needed.contains("selfsubjectaccessreviews"));
    let Some(needed) = needed else { return next.run(request).await };
    used.lock().unwrap().insert(needed.clone());
    if granted.contains(&needed) {
        return next.run(request).await;
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("forbidden: {needed}"), "reason": "Forbidden", "code": 403});
    (StatusCode::FORBIDDEN, [("content-type", "application/json")], status.to_string()).into_response()
}

#[test]
fn the_role_of_a_job_is_sufficient_and_minimal() {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let nodes = (0..3).map(|nth| NodeOptions::new(format!("n{nth}"), KubeletVersion::from_minor(33)));
    let cluster = Cluster::new(ClusterOptions::new(7, Timestamp::now(), nodes.collect())).unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    write_kubeconfig(&folder.path().join("kubeconfig"), &server);
    fs::create_dir(folder.path().join("mine")).unwrap();
    fs::write(folder.path().join(CASES[4]), JOB).unwrap();
    let (granted, used) = (Arc::new(granted()), Arc::new(Mutex::new(Granted::new())));
    let (of_server, recorded) = (granted.clone(), used.clone());
    let router: Router = cluster.router().layer(from_fn(move |request: Request, next: Next| {
        authorize(of_server.clone(), recorded.clone(), request, next)
    }));
    runtime.spawn(async move { cluster.drive().await });
    runtime.spawn(async move { axum::serve(listener, router).await });
    let output = Command::new(env!("CARGO_BIN_EXE_evictlab"))
        .current_dir(folder.path())
        .env_clear()
        .env("EVICTLAB_JOB", "evictlab/test")
        .env("JOB_COMPLETION_INDEX", "0")
        .stdin(Stdio::null())
        .args(["job", "worker", "--indexes", "1", "--"])
        .args(CASES)
        .args(["--kubeconfig", "kubeconfig", "--node-selector", "kubernetes.io/os=linux"])
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let text: String =
        text.lines().filter(|line| !line.starts_with("evictlab-results")).collect::<Vec<_>>().join("\n");
    let used = used.lock().unwrap().clone();
    let lacking: Vec<&String> = used.difference(&granted).collect();
    assert!(lacking.is_empty(), "the role lacks {lacking:?}\n{text}");
    // Requests about workloads that the model does not serve are those about a Deployment.
    let used: Granted = used
        .iter()
        .flat_map(|used| match used.strip_suffix("deployments.apps") {
            Some(verb) => {
                ["deployments", "statefulsets", "daemonsets"].map(|of| format!("{verb}{of}.apps")).to_vec()
            }
            None => vec![used.clone()],
        })
        .collect();
    let unused: Vec<&String> = granted.difference(&used).collect();
    assert!(unused.is_empty(), "no request needs {unused:?}\n{text}");
    assert_eq!(output.status.code(), Some(0), "{text}");
}
