//! Workloads: deployments, replica sets, jobs.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use super::lab::Lab;

const APPS: &str = "/apis/apps/v1/namespaces/test";
const JOBS: &str = "/apis/batch/v1/namespaces/test/jobs";

fn deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "1000"]}]},
            },
        },
    })
}

fn job(name: &str, script: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script]}],
        }}},
    })
}

async fn wait() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn deployments_have_defaults_and_own_their_pods() {
    let lab = Lab::new().await;
    let all: Api<Deployment> = Api::namespaced(lab.client.clone(), "test");
    let created = lab.post(&format!("{APPS}/deployments"), &deployment("d")).await.json();
    let spec = &created["spec"];
    assert_eq!(
        (&spec["replicas"], &spec["progressDeadlineSeconds"], &spec["revisionHistoryLimit"]),
        (&json!(1), &json!(600), &json!(10))
    );
    assert_eq!(spec["strategy"]["rollingUpdate"], json!({"maxSurge": "25%", "maxUnavailable": "25%"}));
    assert_eq!(spec["template"]["spec"]["restartPolicy"], "Always");
    assert_eq!(created["metadata"]["generation"], 1);
    wait().await;
    let status = all.get_status("d").await.unwrap().status.unwrap();
    assert_eq!((status.available_replicas, status.observed_generation), (Some(1), Some(1)));
    // Patches merge containers of a template by name.
    let strategic = "application/strategic-merge-patch+json";
    let path = format!("{APPS}/deployments/d");
    let patch = json!({"spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A"}]}]}}}});
    let patched = lab.patch(&path, strategic, &patch).await.json();
    assert_eq!(patched["spec"]["template"]["spec"]["containers"][0]["image"], "busybox:1.36");
    assert_eq!(patched["metadata"]["generation"], 2);
    // A patch of the status does not change the generation.
    let merge = "application/merge-patch+json";
    let patched = lab
        .patch(&format!("{path}/status"), merge, &json!({"status": {"replicas": 9}, "spec": {"replicas": 9}}))
        .await;
    assert_eq!(
        (&patched.json()["status"]["replicas"], &patched.json()["metadata"]["generation"]),
        (&json!(9), &json!(2))
    );
    all.delete("d", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    for kind in ["deployments", "replicasets"] {
        assert_eq!(lab.get(&format!("{APPS}/{kind}")).await.json()["items"], json!([]));
    }
    assert_eq!(lab.pods().list(&Default::default()).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn jobs_complete_and_fail() {
    let lab = Lab::new().await;
    let all: Api<Job> = Api::namespaced(lab.client.clone(), "test");
    let created = lab.post(JOBS, &job("good", "exit 0")).await.json();
    let uid = &created["metadata"]["uid"];
    assert_eq!(created["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], *uid);
    assert_eq!(created["spec"]["template"]["metadata"]["labels"]["job-name"], "good");
    assert_eq!(created["metadata"]["labels"], Value::Null, "generated labels are those of the template only");
    assert_eq!((&created["spec"]["backoffLimit"], &created["spec"]["completions"]), (&json!(6), &json!(1)));
    lab.post(JOBS, &job("bad", "exit 3")).await;
    wait().await;
    assert_eq!(all.get("good").await.unwrap().status.unwrap().succeeded, Some(1));
    let failed = all.get("bad").await.unwrap().status.unwrap().failed;
    // The first pod, and a retry after 10 s.
    assert_eq!(failed, Some(2));
    let selected = lab.get(&format!("{JOBS}?fieldSelector=status.successful%3D1")).await.json();
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    // A deletion without propagationPolicy would orphan the pods.
    let refused = lab.request(http::Method::DELETE, &format!("{JOBS}/good"), &[], String::new()).await;
    assert_eq!(refused.code, 501, "{}", refused.text);
    all.delete("bad", &DeleteParams::background()).await.unwrap();
    wait().await;
    assert_eq!(lab.pods().list(&Default::default()).await.unwrap().items.len(), 1, "that of the other job");
}

#[tokio::test(start_paused = true)]
async fn rejects_invalid_workloads() {
    let lab = Lab::new().await;
    let changed = |mut object: Value, path: &str, value: Value| {
        *object.pointer_mut(path).unwrap() = value;
        object
    };
    let cases = [
        (
            "deployments",
            changed(deployment("d"), "/spec/selector", json!({"matchLabels": {"app": "e"}})),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"d\"}: `selector` does not match template `labels`",
        ),
        (
            "deployments",
            changed(
                deployment("d"),
                "/spec/template/spec",
                json!({"restartPolicy": "Never", "containers": []}),
            ),
            "[spec.template.spec.containers: Required value, spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"]",
        ),
        (
            "replicasets",
            changed(deployment("r"), "/spec/selector", json!({})),
            "spec.selector: Invalid value: {}: empty selector",
        ),
    ];
    for (kind, object, message) in cases {
        let answer = lab.post(&format!("{APPS}/{kind}"), &object).await;
        assert_eq!(answer.code, 422, "{}", answer.text);
        assert!(answer.message().contains(message), "{}", answer.message());
    }
    let mut always = job("j", "");
    always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    let message = "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"";
    assert!(lab.post(JOBS, &always).await.message().contains(message));
    let mut indexed = job("j", "");
    indexed["spec"]["completionMode"] = json!("Indexed");
    assert_eq!(lab.post(JOBS, &indexed).await.code, 501);
    let mut fails = job("j", "");
    fails["spec"]["podFailurePolicy"] =
        json!({"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    assert_eq!(lab.post(JOBS, &fails).await.code, 501);
    // The template of a job is immutable.
    lab.post(JOBS, &job("j", "")).await;
    let merge = "application/merge-patch+json";
    let patch = json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}});
    let answer = lab.patch(&format!("{JOBS}/j"), merge, &patch).await;
    assert!(answer.message().ends_with("field is immutable"), "{}", answer.text);
}
