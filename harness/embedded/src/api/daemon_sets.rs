//! `apps/v1` `DaemonSet`s, as far as `kubectl drain` looks: those that pods say they belong to. There is no controller for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};

use super::request::Request;
use super::respond::View;
use super::selector::Selector;
use crate::cluster::Cluster;
use crate::registry::Status;
use crate::store::{Kind, Store};

/// Lists them, or tells of one.
pub fn answer(cluster: &Cluster, request: &Request, view: View) -> Result<Response, Status> {
    let selector = Selector::read(&request.query, view.resource.source)?;
    let target = &request.target;
    let (all, version) =
        cluster.with(|world| (sets(&world.store, target.namespace.as_deref()), world.store.version()));
    let Some(name) = &target.name else {
        let chosen: Vec<_> = all.into_iter().filter(|set| selector.chooses(set)).collect();
        return Ok(view.many(&chosen, json!({"resourceVersion": version.to_string()})));
    };
    match all.iter().find(|set| set["metadata"]["name"] == name.as_str()) {
        Some(set) => Ok(view.one(200, set, &[])),
        None => Err(Status {
            code: 404,
            reason: "NotFound",
            message: format!("daemonsets.apps {name:?} not found"),
            details: Some(json!({"name": name, "group": "apps", "kind": "daemonsets"})),
        }),
    }
}

/// The sets of which there are pods, by namespace and name.
fn sets(store: &Store, namespace: Option<&str>) -> Vec<Arc<Value>> {
    let mut sets: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for pod in store.list(Kind::Pod, namespace) {
        let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let owner =
            owners.filter(|owner| owner["kind"] == "DaemonSet").find_map(|owner| owner["name"].as_str());
        if let Some(owner) = owner {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
            sets.entry((namespace, owner)).or_default().push(pod);
        }
    }
    sets.into_iter().map(|((namespace, name), pods)| Arc::new(set(store, namespace, name, &pods))).collect()
}

fn set(store: &Store, namespace: &str, name: &str, pods: &[&Value]) -> Value {
    let first = &pods[0]["metadata"];
    let owners = first["ownerReferences"].as_array().into_iter().flatten();
    let uid = owners.filter(|owner| owner["name"] == name).find_map(|owner| owner["uid"].as_str());
    // What the controller adds to the pods of a set.
    const ADDED: [&str; 2] = ["controller-revision-hash", "pod-template-generation"];
    let mut labels = first["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|label, _| !ADDED.contains(&label.as_str()));
    }
    let is_ready = |pod: &&&Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
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
