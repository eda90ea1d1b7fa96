//! Injected faults of requests and watches.

use std::time::Duration;

use crate::FaultScope;
use evictlab_fault::Fault;
use serde_json::json;

use super::lab::Lab;

const PODS: &str = "/api/v1/namespaces/test/pods";

fn arm(lab: &Lab, script: serde_json::Value) {
    let script: Vec<Fault> = serde_json::from_value(script).unwrap();
    let scope = FaultScope { namespace: Some("test".into()), node: None };
    lab.cluster.inject_faults(&script, &scope);
}

#[tokio::test(start_paused = true)]
async fn requests_fail_and_wait_during_faults() {
    let lab = Lab::new().await;
    arm(
        &lab,
        json!([{"api-error": {"at": "10s", "for": "5s", "code": 503, "resource": "pods"}}, {"api-slow": {"at": "20s", "by": "2s"}}]),
    );
    assert_eq!(lab.get(PODS).await.code, 200);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(lab.get(PODS).await.code, 503);
    assert_eq!(lab.get("/api/v1/namespaces/test/configmaps").await.code, 200);
    assert_eq!(lab.get("/api/v1/namespaces/default/pods").await.code, 200);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = lab.now();
    assert_eq!(lab.get(PODS).await.code, 200);
    assert_eq!(lab.now() - before, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn faults_cut_open_watches() {
    let lab = Lab::new().await;
    arm(&lab, json!([{"watch-closed": {"at": "10s", "resource": "pods"}}, {"watch-expired": {"at": "20s"}}]));
    let began = lab.now();
    let mut pods = lab.watch(&format!("{PODS}?watch=1")).await;
    let mut maps = lab.watch("/api/v1/namespaces/test/configmaps?watch=1&resourceVersion=0").await;
    assert_eq!(maps.summary().await.as_deref(), Some("ADDED kube-root-ca.crt"));
    assert_eq!(pods.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 10);
    let error = maps.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["reason"]), (&json!("ERROR"), &json!("Expired")));
    assert_eq!(maps.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 20);
    // Faults do not cut watches that are opened later.
    let mut later = lab.watch(&format!("{PODS}?watch=1&timeoutSeconds=30")).await;
    assert_eq!(later.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 50);
}

#[tokio::test(start_paused = true)]
async fn ended_faults_have_no_effect() {
    let lab = Lab::new().await;
    let script = json!([{"api-error": {"at": "0s", "for": "60s", "resource": "pods"}}, {"watch-closed": {"at": "10s"}}]);
    let script: Vec<Fault> = serde_json::from_value(script).unwrap();
    let scope = FaultScope { namespace: Some("test".into()), node: Some("ended".into()) };
    lab.cluster.inject_faults(&script, &scope);
    assert_eq!(lab.get(PODS).await.code, 500);
    lab.cluster.end_faults("other");
    assert_eq!(lab.get(PODS).await.code, 500);
    lab.cluster.end_faults("ended");
    let began = lab.now();
    let mut pods = lab.watch(&format!("{PODS}?watch=1&timeoutSeconds=30")).await;
    assert_eq!(pods.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 30);
}
