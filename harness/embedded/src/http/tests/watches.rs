//! Watches.

use std::time::Duration;

use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use super::lab::Lab;

const MAPS: &str = "/api/v1/namespaces/test/configmaps";

async fn label(lab: &Lab, name: &str, value: Option<&str>) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"l": value}}}));
    lab.maps().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kube_watcher_lists_again_after_410() {
    let lab = Lab::new().await;
    lab.create_map("a").await;
    let mut events =
        watcher(lab.maps(), watcher::Config::default().fields("metadata.namespace=test")).boxed();
    let mut next = async || match events.next().await.unwrap() {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(map)) => format!("init {}", map.name_any()),
        Ok(Event::InitDone) => "done".to_owned(),
        Ok(Event::Apply(map)) => format!("apply {}", map.name_any()),
        Ok(Event::Delete(map)) => format!("delete {}", map.name_any()),
        Err(error) => error.to_string(),
    };
    for expected in ["init", "init a", "init kube-root-ca.crt", "done"] {
        assert_eq!(next().await, expected);
    }
    lab.create_map("b").await;
    assert_eq!(next().await, "apply b");
    label(&lab, "b", Some("x")).await;
    assert_eq!(next().await, "apply b");
    lab.maps().delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(next().await, "delete b");
    lab.cluster.with(|simulation| simulation.store.forget_history());
    lab.create_map("c").await;
    let expired = next().await;
    assert!(expired.contains("too old resource version"), "{expired}");
    for expected in ["init", "init a", "init c", "init kube-root-ca.crt", "done"] {
        assert_eq!(next().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn selector_changes_add_and_delete_objects() {
    let lab = Lab::new().await;
    lab.create_map("a").await;
    let mut watch = lab.watch(&format!("{MAPS}?watch=1&labelSelector=l%3Dx&timeoutSeconds=10")).await;
    lab.create_map("other").await;
    label(&lab, "a", Some("x")).await;
    assert_eq!(watch.summary().await.as_deref(), Some("ADDED a"));
    let data = Patch::Merge(json!({"data": {"k": "v"}}));
    lab.maps().patch("a", &PatchParams::default(), &data).await.unwrap();
    assert_eq!(watch.summary().await.as_deref(), Some("MODIFIED a"));
    label(&lab, "a", None).await;
    // DELETED has the last matching state, with the version of the change.
    let left = watch.next().await.unwrap();
    let now = lab.maps().get("a").await.unwrap();
    assert_eq!((&left["type"], &left["object"]["metadata"]["labels"]["l"]), (&json!("DELETED"), &json!("x")));
    assert_eq!(left["object"]["metadata"]["resourceVersion"], json!(now.resource_version().unwrap()));
    assert_eq!(watch.summary().await, None);
}

#[tokio::test(start_paused = true)]
async fn sends_bookmarks_each_minute_and_before_the_end() {
    let lab = Lab::new().await;
    let mut watch = lab
        .watch(&format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=100&resourceVersion=0"))
        .await;
    assert_eq!(watch.summary().await.as_deref(), Some("ADDED kube-root-ca.crt"));
    let began = lab.now();
    let mut marks = Vec::new();
    while let Some(event) = watch.next().await {
        assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("BOOKMARK"), &json!("ConfigMap")));
        assert!(event["object"]["metadata"]["resourceVersion"].is_string());
        marks.push((lab.now() - began).as_secs());
    }
    assert_eq!(marks, [60, 98]);
    assert_eq!((lab.now() - began).as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn rejects_initial_events() {
    let lab = Lab::new().await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let error = lab.get(&format!("{MAPS}?{query}")).await;
    assert_eq!((error.code, error.json()["reason"].as_str()), (422, Some("Invalid")));
}

#[tokio::test(start_paused = true)]
async fn sends_changes_since_a_version_unless_forgotten() {
    let lab = Lab::new().await;
    let old = lab.create_map("a").await.resource_version().unwrap();
    lab.create_map("b").await;
    let mut watch = lab.watch(&format!("{MAPS}?watch=1&resourceVersion={old}&timeoutSeconds=5")).await;
    assert_eq!(watch.summary().await.as_deref(), Some("ADDED b"));
    assert_eq!(watch.summary().await, None);
    lab.cluster.with(|simulation| simulation.store.forget_history());
    let mut watch = lab.watch(&format!("{MAPS}?watch=1&resourceVersion={old}")).await;
    let error = watch.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(error["object"]["message"].as_str().unwrap().starts_with("too old resource version: "));
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn accepts_any_timeout() {
    let lab = Lab::new().await;
    for seconds in [i64::MAX, i64::MAX / 2, -1] {
        let mut watch = lab.watch(&format!("{MAPS}?watch=1&timeoutSeconds={seconds}")).await;
        assert_eq!(watch.summary().await.as_deref(), Some("ADDED kube-root-ca.crt"), "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_runs_send_equal_events() {
    let run = async || {
        let lab = Lab::new().await;
        let mut watch = lab.watch("/api/v1/namespaces/test/pods?watch=1&timeoutSeconds=60").await;
        lab.sleeper("p").await;
        lab.pods().delete("p", &DeleteParams::default()).await.unwrap();
        let mut sent = Vec::new();
        while let Some(event) = watch.next().await {
            sent.push((lab.now(), event.to_string()));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        (sent, lab.get("/api/v1/events").await.text)
    };
    let (one, other) = (run().await, run().await);
    assert!(one.0.len() > 3, "{}", one.0.len());
    assert_eq!(one, other);
}
