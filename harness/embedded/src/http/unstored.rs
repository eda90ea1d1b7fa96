//! Resources without stored objects: daemon sets and access reviews.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReviewStatus};
use serde_json::{Value, json};

use super::request::ApiRequest;
use super::responses;
use super::selector::ObjectSelector;
use super::view::View;
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::resource::{Kind, ObjectExt};
use crate::storage::Store;

/// Handles POST of a `SelfSubjectAccessReview`: every request with the token is allowed.
pub(crate) fn review_access(request: &ApiRequest) -> Result<Response, Status> {
    let body = request.json_body()?;
    let review: SelfSubjectAccessReview =
        serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
    let status = SubjectAccessReviewStatus {
        allowed: true,
        reason: Some("the embedded cluster allows everything".to_owned()),
        ..SubjectAccessReviewStatus::default()
    };
    let review = SelfSubjectAccessReview { status: Some(status), ..review };
    Ok(responses::json(201, &json!(review)))
}

/// Handles GET of one daemon set and of a list, for `kubectl drain`. Only daemon sets that own pods
/// exist, and no controller manages them.
pub(crate) fn get_or_list_daemon_sets(
    cluster: &Cluster,
    request: &ApiRequest,
    view: View,
) -> Result<Response, Status> {
    let selector = ObjectSelector::from_query(&request.query, view.resource.source)?;
    let target = &request.target;
    let (all, version) = cluster.with(|simulation| {
        (daemon_sets(&simulation.store, target.namespace.as_deref()), simulation.store.version())
    });
    let Some(name) = &target.name else {
        let selected: Vec<_> = all.into_iter().filter(|set| selector.matches(set)).collect();
        return Ok(view.list(&selected, json!({"resourceVersion": version.to_string()})));
    };
    match all.iter().find(|set| set["metadata"]["name"] == name.as_str()) {
        Some(set) => Ok(view.one(200, set, &[])),
        None => Err(Status::new(404, "NotFound", format!("daemonsets.apps {name:?} not found"))),
    }
}

/// Returns the daemon sets that own pods, ordered by namespace and name.
fn daemon_sets(store: &Store, namespace: Option<&str>) -> Vec<Arc<Value>> {
    let mut sets: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for pod in store.list(Kind::Pod, namespace) {
        let owners = pod.owners();
        let owner =
            owners.filter(|owner| owner["kind"] == "DaemonSet").find_map(|owner| owner["name"].as_str());
        if let Some(owner) = owner {
            let namespace = pod.namespace();
            sets.entry((namespace, owner)).or_default().push(pod);
        }
    }
    sets.into_iter()
        .map(|((namespace, name), pods)| Arc::new(daemon_set(store, namespace, name, &pods)))
        .collect()
}

fn daemon_set(store: &Store, namespace: &str, name: &str, pods: &[&Value]) -> Value {
    let first = &pods[0]["metadata"];
    let owners = first.items("ownerReferences");
    let uid = owners.filter(|owner| owner["name"] == name).find_map(|owner| owner["uid"].as_str());
    // Labels that the controller adds to the pods.
    const POD_LABELS: [&str; 2] = ["controller-revision-hash", "pod-template-generation"];
    let mut labels = first["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|label, _| !POD_LABELS.contains(&label.as_str()));
    }
    let is_ready = |pod: &&&Value| {
        let conditions = pod["status"].items("conditions");
        conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let (count, ready) = (pods.len(), pods.iter().filter(is_ready).count());
    json!({
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": store.version().to_string(),
            "generation": 1,
            "creationTimestamp": first["creationTimestamp"],
            "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": pods[0]["spec"]["containers"]}},
        },
        "status": {
            "currentNumberScheduled": count,
            "desiredNumberScheduled": count,
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "updatedNumberScheduled": count,
            "observedGeneration": 1,
        },
    })
}
