//! Discovery.

use kube::discovery::Discovery;
use serde_json::Value;

use super::lab::Lab;

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
        "node.k8s.io",
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
