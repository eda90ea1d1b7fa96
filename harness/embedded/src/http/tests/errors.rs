//! Errors of the API.

use http::Method;
use serde_json::json;

use super::lab::Lab;

#[tokio::test(start_paused = true)]
async fn names_unknown_resources_and_unsupported_verbs() {
    let lab = Lab::new().await;
    let error = async |method: Method, path: &str| {
        let answer = lab.request(method, path, &[], String::new()).await;
        assert_eq!(answer.json()["kind"], "Status");
        (answer.code, answer.message())
    };
    let (code, message) = error(Method::GET, "/apis/apps/v1/statefulsets").await;
    assert_eq!(code, 404);
    assert!(message.ends_with("the embedded cluster does not serve apps/v1/statefulsets"), "{message}");
    let (code, message) = error(Method::GET, "/api/v1/namespaces/test/pods/p/binding").await;
    assert_eq!(code, 404);
    assert!(message.ends_with("does not serve v1/pods/binding"), "{message}");
    assert_eq!(error(Method::GET, "/metrics").await.0, 404);
    for (method, path, ending) in [
        (Method::DELETE, "/api/v1/namespaces", "deletecollection of namespaces"),
        (Method::DELETE, "/api/v1/pods", "deletecollection of pods"),
        (Method::PUT, "/api/v1/namespaces/test/pods", "update of pods"),
        (Method::POST, "/api/v1/namespaces/test/pods/p/log", "create of pods/log"),
        (Method::OPTIONS, "/api/v1/pods", "options of pods"),
    ] {
        let (code, message) = error(method, path).await;
        assert_eq!(code, 405, "{path}");
        assert!(message.ends_with(ending), "{message}");
    }
    let (code, message) = error(Method::POST, "/api/v1/namespaces/test/pods/p/exec?command=ls").await;
    assert_eq!((code, message.split(" by").next()), (501, Some(r#"pods "p": exec is not served"#)));
}

#[tokio::test(start_paused = true)]
async fn rejects_objects_that_do_not_match_their_path() {
    let lab = Lab::new().await;
    const MAPS: &str = "/api/v1/namespaces/test/configmaps";
    let error = async |object| {
        let answer = lab.post(MAPS, &object).await;
        assert_eq!(answer.code, 400);
        answer.message()
    };
    let kind = error(json!({"kind": "Pod", "metadata": {"name": "a"}})).await;
    assert!(kind.starts_with("Pod in version"), "{kind}");
    let version = error(json!({"apiVersion": "v2", "metadata": {"name": "a"}})).await;
    assert_eq!(version, "the API version in the data (v2) does not match the expected API version (v1)");
    let namespace = error(json!({"metadata": {"name": "a", "namespace": "b"}})).await;
    assert!(namespace.starts_with("the namespace of the provided object"), "{namespace}");
    lab.create_map("a").await;
    let put = lab.put(&format!("{MAPS}/a"), &json!({"metadata": {"name": "b"}})).await;
    assert_eq!(
        (put.code, put.message().as_str()),
        (400, "the name of the object (b) does not match the name on the URL (a)")
    );
    let lease = "/apis/coordination.k8s.io/v1/namespaces/test/leases/l";
    let created = lab.put(lease, &json!({"metadata": {"name": "l"}, "spec": {}})).await;
    assert_eq!((created.code, lab.put(lease, &created.json()).await.code), (201, 200));
    let twice = lab.post(MAPS, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!((twice.code, twice.message().as_str()), (409, r#"configmaps "a" already exists"#));
    let missing = lab.get(&format!("{MAPS}/z")).await;
    assert_eq!((missing.code, missing.message().as_str()), (404, r#"configmaps "z" not found"#));
    let strict = lab
        .post(&format!("{MAPS}?fieldValidation=Strict"), &json!({"metadata": {"name": "c"}, "dat": {}}))
        .await;
    assert_eq!(strict.code, 400);
    assert!(strict.message().contains(r#"unknown field "dat""#), "{}", strict.text);
    let warned = lab.post(MAPS, &json!({"metadata": {"name": "c"}, "dat": {}})).await;
    assert_eq!((warned.code, &warned.json()["dat"]), (201, &json!(null)));
    let dry = lab.post(&format!("{MAPS}?dryRun=All"), &json!({"metadata": {"name": "d"}})).await;
    assert_eq!((dry.code, lab.get(&format!("{MAPS}/d")).await.code), (501, 404));
    let long = json!({"metadata": {"name": "l"}, "data": {"a": "x".repeat(3 << 20)}});
    assert_eq!(lab.post(MAPS, &long).await.code, 413);
}
