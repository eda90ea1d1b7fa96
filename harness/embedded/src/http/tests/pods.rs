//! Logs, eviction, binding, and the kubelet proxy.

use kube::api::{DeleteParams, EvictParams, LogParams};
use serde_json::json;

use super::lab::Lab;

#[tokio::test(start_paused = true)]
async fn reads_and_follows_logs() {
    let lab = Lab::new().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "a", "image": "busybox:1.36", "command": ["sh", "-c", "echo one; sleep 5; echo two; sleep 5"]},
        {"name": "b", "image": "busybox:1.36", "command": ["sleep", "1000"]},
    ]}});
    assert_eq!(lab.post("/api/v1/namespaces/test/pods", &pod).await.code, 201);
    let path = "/api/v1/namespaces/test/pods/p/log";
    let unnamed = lab.get(path).await;
    assert_eq!(
        (unnamed.code, unnamed.message().as_str()),
        (400, "a container name must be specified for pod p, choose one of: [a b]")
    );
    assert_eq!(lab.get(&format!("{path}?container=z")).await.message(), "container z is not valid for pod p");
    lab.running("p").await;
    let followed = lab.get(&format!("{path}?container=a&follow=true")).await;
    assert_eq!(followed.text, "one\ntwo\n");
    let tail = LogParams { container: Some("a".into()), tail_lines: Some(1), ..LogParams::default() };
    assert_eq!(lab.pods().logs("p", &tail).await.unwrap(), "two\n");
    let cut = lab.get(&format!("{path}?container=a&follow=true&limitBytes=2")).await;
    assert_eq!(cut.text, "on");
    let previous = lab.get(&format!("{path}?container=b&previous=true")).await;
    assert_eq!(previous.message(), r#"previous terminated container "b" in pod "p" not found"#);
}

#[tokio::test(start_paused = true)]
async fn evicts_and_deletes_pods() {
    let lab = Lab::new().await;
    lab.sleeper("p").await;
    lab.pods().evict("p", &EvictParams::default()).await.unwrap();
    assert!(lab.pods().get("p").await.unwrap().metadata.deletion_timestamp.is_some());
    lab.pods().delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(lab.get("/api/v1/namespaces/test/pods/p").await.code, 404);

    let pod = json!({"metadata": {"name": "q"}, "spec": {
        "schedulerName": "nobody", "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}],
    }});
    assert_eq!(lab.post("/api/v1/namespaces/test/pods", &pod).await.code, 201);
    assert_eq!(lab.get("/api/v1/namespaces/test/pods/q/log").await.text, "");
    let body = json!({"preconditions": {"uid": "another"}}).to_string();
    let kept = lab.request(http::Method::DELETE, "/api/v1/namespaces/test/pods/q", &[], body).await;
    assert_eq!(kept.code, 409);
}

#[tokio::test(start_paused = true)]
async fn head_requests_do_not_write() {
    let lab = Lab::new().await;
    lab.sleeper("p").await;
    for path in ["/api/v1/namespaces/test/pods/p/status", "/api/v1/nodes/worker/proxy/healthz"] {
        let answer = lab.request(http::Method::HEAD, path, &[], String::new()).await;
        assert_eq!(answer.code, 200, "{path}: {}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn forwards_requests_to_kubelets() {
    let lab = Lab::new().await;
    lab.sleeper("p").await;
    let summary = lab.get("/api/v1/nodes/worker/proxy/stats/summary").await;
    assert_eq!((summary.code, &summary.json()["node"]["nodeName"]), (200, &json!("worker")));
    let configz = lab.get("/api/v1/nodes/worker:10250/proxy/configz").await;
    assert!(configz.json()["kubeletconfig"].is_object());
    assert_eq!(lab.get("/api/v1/nodes/worker/proxy/nothing").await.code, 404);
    assert_eq!(lab.get("/api/v1/nodes/other/proxy/healthz").await.message(), r#"nodes "other" not found"#);

    lab.cluster.with(|simulation| simulation.nodes.get_mut("worker").unwrap().kubelet.stop());
    let stopped = lab.get("/api/v1/nodes/worker/proxy/healthz").await;
    assert_eq!(stopped.code, 503);
    assert!(stopped.text.contains("connection refused"), "{}", stopped.text);
    assert_eq!(lab.get("/api/v1/namespaces/test/pods/p/log").await.code, 500);
}
