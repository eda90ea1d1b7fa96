//! Tables.

use serde_json::{Value, json};

use super::lab::Lab;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn columns(table: &Value) -> Vec<&str> {
    table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn rows_of_every_kind_fit_their_columns() {
    let lab = Lab::new().await;
    lab.sleeper("p").await;
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}});
    assert_eq!(lab.post("/apis/policy/v1/namespaces/test/poddisruptionbudgets", &budget).await.code, 201);
    let template = |policy: &str| {
        json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "pause"}]},
        })
    };
    let selector = json!({"matchLabels": {"a": "b"}});
    for (path, spec) in [
        (
            "apps/v1/namespaces/test/deployments",
            json!({"selector": selector, "template": template("Always")}),
        ),
        ("batch/v1/namespaces/test/jobs", json!({"template": template("Never")})),
    ] {
        let created =
            lab.post(&format!("/apis/{path}"), &json!({"metadata": {"name": "w"}, "spec": spec})).await;
        assert_eq!(created.code, 201, "{}", created.text);
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    for path in [
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/api/v1/pods",
        "/api/v1/events",
        "/api/v1/serviceaccounts",
        "/api/v1/configmaps",
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/replicasets",
        "/apis/batch/v1/jobs",
        "/apis/coordination.k8s.io/v1/leases",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ] {
        let table = lab.get_as(path, TABLE).await.json();
        assert_eq!(table["kind"], "Table", "{path}");
        let columns = columns(&table).len();
        let rows = table["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{path}");
        for row in rows {
            assert_eq!(row["cells"].as_array().unwrap().len(), columns, "{path}: {row}");
            assert_eq!(row["object"]["kind"], "PartialObjectMetadata", "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn prints_pods_as_kubectl() {
    let lab = Lab::new().await;
    lab.sleeper("p").await;
    let path = "/api/v1/namespaces/test/pods";
    let table = lab.get_as(path, TABLE).await.json();
    let wide = ["IP", "Node", "Nominated Node", "Readiness Gates"];
    assert_eq!(columns(&table), [&["Name", "Ready", "Status", "Restarts", "Age"][..], &wide].concat());
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        (&cells[0], &cells[1], &cells[2], &cells[6]),
        (&json!("p"), &json!("1/1"), &json!("Running"), &json!("worker"))
    );
    let whole = lab.get_as(&format!("{path}/p?includeObject=Object"), TABLE).await.json();
    assert_eq!(whole["rows"][0]["object"]["spec"]["nodeName"], "worker");
    assert_eq!(lab.get_as(&format!("{path}?includeObject=Some"), TABLE).await.code, 400);

    let mut watch = lab.watch_as(&format!("{path}?watch=1&timeoutSeconds=5"), TABLE).await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["rows"][0]["cells"][0], "p");
    assert_eq!(columns(&first["object"]).len(), 9);
    let merge = "application/merge-patch+json";
    lab.patch(&format!("{path}/p"), merge, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    let second = watch.next().await.unwrap();
    assert_eq!((&second["type"], &second["object"]["columnDefinitions"]), (&json!("MODIFIED"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn serves_metadata_as_json_only() {
    let lab = Lab::new().await;
    let path = "/api/v1/namespaces/test/configmaps";
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = lab.get_as(path, partial).await.json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(
        (&list["items"][0]["kind"], &list["items"][0]["data"]),
        (&json!("PartialObjectMetadata"), &Value::Null)
    );
    assert_eq!(lab.get_as(path, "application/yaml").await.code, 406);
    assert_eq!(lab.get_as(path, "application/vnd.kubernetes.protobuf").await.code, 406);
    let body = "metadata:\n  name: y\ndata:\n  a: b\n";
    let created =
        lab.request(http::Method::POST, path, &[("content-type", "application/yaml")], body.to_owned()).await;
    assert_eq!(created.code, 415);
}
