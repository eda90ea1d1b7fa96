//! Patches.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::lab::Lab;

#[tokio::test(start_paused = true)]
async fn applies_every_kind_of_patch() {
    let lab = Lab::new().await;
    lab.create_map("a").await;
    let patched = async |patch: Patch<serde_json::Value>| {
        let map = lab.maps().patch("a", &PatchParams::default(), &patch).await.unwrap();
        map.data.map(|data| data.into_iter().collect::<Vec<_>>()).unwrap_or_default()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        patched(Patch::Merge(json!({"data": {"a": "1", "b": "2"}}))).await,
        [pair("a", "1"), pair("b", "2")]
    );
    assert_eq!(
        patched(Patch::Strategic(json!({"data": {"a": null, "c": "3"}}))).await,
        [pair("b", "2"), pair("c", "3")]
    );

    const PATH: &str = "/api/v1/namespaces/test/configmaps/a";
    let merge = async |patch| lab.patch(PATH, "application/merge-patch+json", &patch).await;
    assert_eq!(merge(json!({"metadata": {"name": "z"}})).await.code, 400);
    assert_eq!(lab.patch(PATH, "application/json-patch+json", &json!([])).await.code, 415);
    assert_eq!(lab.patch(PATH, "text/plain", &json!({})).await.code, 415);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}});
    assert_eq!(merge(stale).await.code, 409);
}

#[tokio::test(start_paused = true)]
async fn patches_of_a_status_change_nothing_else() {
    let lab = Lab::new().await;
    let nodes: Api<Node> = Api::all(lab.client.clone());
    let condition = json!({"type": "Burning", "status": "True", "reason": "Fire", "message": "hot"});
    let patch =
        Patch::Strategic(json!({"spec": {"unschedulable": true}, "status": {"conditions": [condition]}}));
    let node = nodes.patch_status("worker", &PatchParams::default(), &patch).await.unwrap();
    let kinds = |node: &Node| {
        let conditions = node.status.as_ref().unwrap().conditions.clone().unwrap_or_default();
        conditions.into_iter().map(|condition| condition.type_).collect::<Vec<_>>()
    };
    assert!(kinds(&node).contains(&"Burning".to_owned()) && kinds(&node).contains(&"Ready".to_owned()));
    assert_eq!(node.spec.as_ref().unwrap().unschedulable, None);
    let node = nodes.patch("worker", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));
}

#[tokio::test(start_paused = true)]
async fn patches_and_replaces_ephemeral_containers() {
    let lab = Lab::new().await;
    lab.sleeper("p").await;
    let debugger = |name: &str| json!({"name": name, "image": "busybox:1.36", "command": ["sleep", "1"]});
    let patch = Patch::Strategic(json!({"spec": {"ephemeralContainers": [debugger("d")]}}));
    lab.pods().patch_ephemeral_containers("p", &PatchParams::default(), &patch).await.unwrap();
    let mut pod = lab.pods().get_ephemeral_containers("p").await.unwrap();
    let list = pod.spec.as_mut().unwrap().ephemeral_containers.as_mut().unwrap();
    list.push(serde_json::from_value(debugger("e")).unwrap());
    let pod = lab.pods().replace_ephemeral_containers("p", &Default::default(), &pod).await.unwrap();
    let names: Vec<_> =
        pod.spec.unwrap().ephemeral_containers.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["d", "e"]);
    let with_resources = json!({"spec": {"ephemeralContainers": [{"name": "f", "image": "i", "resources": {"limits": {"memory": "1Gi"}}}]}});
    let path = "/api/v1/namespaces/test/pods/p/ephemeralcontainers";
    let error = lab.patch(path, "application/strategic-merge-patch+json", &with_resources).await;
    assert_eq!(error.code, 422);
    assert!(
        error.message().contains("resources: Forbidden: cannot be set for an Ephemeral Container"),
        "{}",
        error.text
    );
    assert_eq!(lab.pods().get("p").await.unwrap().name_any(), "p");
}

#[tokio::test(start_paused = true)]
async fn schedules_by_extended_resources() {
    const PATH: &str = "/api/v1/nodes/worker";
    let lab = Lab::new().await;
    let patch = json!({"status": {"capacity": {"example.com/toy": "2", "example.com/other": "1"}}});
    let answer = lab.patch(&format!("{PATH}/status"), "application/merge-patch+json", &patch).await;
    assert_eq!(answer.json()["status"]["capacity"]["example.com/toy"], "2", "{}", answer.text);
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    let allocatable = lab.get(PATH).await.json()["status"]["allocatable"].take();
    assert_eq!(
        (&allocatable["example.com/toy"], &allocatable["example.com/other"]),
        (&json!("2"), &json!("1"))
    );
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    assert_eq!(lab.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await.code, 201);
    let pod = |name: &str, class: Option<&str>, toys: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "priorityClassName": class, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "pause", "resources": {"limits": {"example.com/toy": toys}}}],
        }})
    };
    const PODS: &str = "/api/v1/namespaces/test/pods";
    for (name, toys) in [("first", "1"), ("second", "1"), ("third", "1")] {
        assert_eq!(lab.post(PODS, &pod(name, None, toys)).await.code, 201);
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    }
    let third = lab.get(&format!("{PODS}/third")).await.json();
    let message = third["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("0/1 nodes are available: 1 Insufficient example.com/toy."), "{message}");
    assert_eq!(lab.post(PODS, &pod("important", Some("high"), "2")).await.code, 201);
    lab.running("important").await;
}
