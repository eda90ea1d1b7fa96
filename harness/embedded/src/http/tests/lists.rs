//! Lists: versions, selectors.

use kube::api::ListParams;
use serde_json::json;

use super::lab::{Lab, names};

const MAPS: &str = "/api/v1/namespaces/test/configmaps";
const ROOT_CA: &str = "kube-root-ca.crt";

#[tokio::test(start_paused = true)]
async fn lists_have_the_current_version() {
    let lab = Lab::new().await;
    let old = lab.get(MAPS).await.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    lab.create_map("a").await;
    let count = async |query: &str| {
        let answer = lab.get(&format!("{MAPS}?{query}")).await;
        answer.json()["items"].as_array().map(Vec::len)
    };
    assert_eq!(count("").await, Some(2));
    assert_eq!(count(&format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan")).await, Some(2));
    assert_eq!(count("resourceVersion=0").await, Some(2));
    let future = lab.get(&format!("{MAPS}?resourceVersion=999999")).await;
    assert_eq!(future.code, 504);
    assert!(
        future.message().starts_with("Timeout: Too large resource version: 999999, current: "),
        "{}",
        future.text
    );
}

#[tokio::test(start_paused = true)]
async fn selects_by_labels_and_fields() {
    let lab = Lab::new().await;
    for (name, tier) in [("a", "db"), ("b", "web")] {
        let map = json!({"metadata": {"name": name, "labels": {"tier": tier}}});
        assert_eq!(lab.post(MAPS, &map).await.code, 201);
    }
    let listed = async |params: ListParams| names(&lab.maps().list(&params).await.unwrap().items);
    assert_eq!(listed(ListParams::default().labels("tier in (db)")).await, ["a"]);
    assert_eq!(listed(ListParams::default().labels("tier")).await, ["a", "b"]);
    assert_eq!(listed(ListParams::default().labels("!tier")).await, [ROOT_CA]);
    assert_eq!(listed(ListParams::default().fields("metadata.name=b")).await, ["b"]);
    let error = lab.get("/api/v1/pods?fieldSelector=spec.image%3Da").await;
    assert_eq!((error.code, error.message().as_str()), (400, "field label not supported: spec.image"));

    let deleted = lab
        .request(http::Method::DELETE, &format!("{MAPS}?labelSelector=tier%3Ddb"), &[], String::new())
        .await;
    assert_eq!((deleted.code, deleted.json()["items"][0]["metadata"]["name"].as_str()), (200, Some("a")));
    assert_eq!(listed(ListParams::default().labels("tier")).await, ["b"]);
}
