//! Requests that meet faults.

use std::time::Duration;

use evictlab_embedded::fault::{Fault, Scope};
use serde_json::json;

use crate::lab::Lab;

const PODS: &str = "/api/v1/namespaces/test/pods";

fn arm(lab: &Lab, script: serde_json::Value) {
    let script: Vec<Fault> = serde_json::from_value(script).unwrap();
    let scope = Scope { namespace: Some("test".into()), node: None };
    lab.cluster.with(|world| world.with(|_, _, ctx| ctx.faults.arm(&script, &scope, ctx.now, ctx.agenda)));
}

#[tokio::test(start_paused = true)]
async fn requests_fail_and_wait_while_the_script_says_so() {
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
async fn watches_are_cut() {
    let lab = Lab::new().await;
    arm(&lab, json!([{"watch-closed": {"at": "10s", "resource": "pods"}}, {"watch-expired": {"at": "20s"}}]));
    let began = lab.now();
    let mut pods = lab.watch(&format!("{PODS}?watch=1")).await;
    let mut maps = lab.watch("/api/v1/namespaces/test/configmaps?watch=1&resourceVersion=0").await;
    assert_eq!(maps.told().await.as_deref(), Some("ADDED kube-root-ca.crt"));
    assert_eq!(pods.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 10);
    let error = maps.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["reason"]), (&json!("ERROR"), &json!("Expired")));
    assert_eq!(maps.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 20);
    // A watch that begins later is not concerned.
    let mut later = lab.watch(&format!("{PODS}?watch=1&timeoutSeconds=30")).await;
    assert_eq!(later.next().await, None);
    assert_eq!((lab.now() - began).as_secs(), 50);
}
