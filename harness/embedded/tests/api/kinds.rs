//! Discovery, and events in both of their API groups.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kube::discovery::Discovery;
use serde_json::{Value, json};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn discovers_all_served_groups() {
    let lab = Lab::new().await;
    let found = Discovery::new(lab.client.clone()).run().await.unwrap();
    let groups: Vec<&str> = found.groups_alphabetical().iter().map(|group| group.name()).collect();
    let served = [
        "",
        "apps",
        "authorization.k8s.io",
        "batch",
        "coordination.k8s.io",
        "events.k8s.io",
        "policy",
        "scheduling.k8s.io",
    ];
    assert_eq!(groups, served);
    let version = lab.client.apiserver_version().await.unwrap();
    assert_eq!((version.minor.as_str(), version.git_version.as_str()), ("33", "v1.33.0+evictlab"));
    assert_eq!(lab.get("/readyz").await.text, "ok");
    let group = lab.get("/apis/policy").await.json();
    assert_eq!(group["preferredVersion"]["groupVersion"], "policy/v1");
    assert_eq!(lab.get("/apis/apps/v2").await.code, 404);
    // kubectl requires this parameter before it leaves validation to the server.
    for path in ["/openapi/v3/api/v1", "/openapi/v3/apis/policy/v1"] {
        let paths = lab.get(path).await.json()["paths"].take();
        let Value::Object(paths) = paths else { panic!("{path}") };
        assert!(!paths.is_empty());
        for (_, path) in paths {
            let parameters = path["patch"]["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|one| one["name"] == "fieldValidation" && one["in"] == "query"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn serves_events_in_both_groups() {
    let lab = Lab::new().await;
    let event = json!({
        "metadata": {"name": "e"}, "reason": "R", "note": "n", "type": "Normal", "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c", "reportingInstance": "i", "regarding": {"kind": "Pod", "namespace": "test", "name": "p"},
    });
    let created = lab.post("/apis/events.k8s.io/v1/namespaces/test/events", &event).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let core = lab.get("/api/v1/namespaces/test/events/e").await.json();
    assert_eq!(
        (&core["message"], &core["involvedObject"]["name"], &core["apiVersion"]),
        (&json!("n"), &json!("p"), &json!("v1"))
    );
    let events: Api<Event> = Api::namespaced(lab.client.clone(), "test");
    let selected = events.list(&ListParams::default().fields("regarding.name=p,reason=R")).await.unwrap();
    assert_eq!(selected.items[0].note.as_deref(), Some("n"));
    let patched = lab
        .patch(
            "/apis/events.k8s.io/v1/namespaces/test/events/e",
            "application/merge-patch+json",
            &json!({"note": "m"}),
        )
        .await;
    assert_eq!((patched.code, &patched.json()["note"]), (200, &json!("m")));
    assert_eq!(lab.get("/api/v1/namespaces/test/events/e").await.json()["message"], "m");
    let mut watch = lab.watch("/apis/events.k8s.io/v1/namespaces/test/events?watch=1&timeoutSeconds=1").await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], "events.k8s.io/v1");
}
