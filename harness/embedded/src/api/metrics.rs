//! `metrics.k8s.io/v1beta1`: what nodes and pods use, as their kubelets' last measurements tell it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};

use super::request::Request;
use super::respond::View;
use super::selector::Selector;
use crate::cluster::Cluster;
use crate::node::Node;
use crate::registry::Status;
use crate::store::Kind;
use crate::world::Ctx;

/// The use of nodes.
pub fn nodes(cluster: &Cluster, request: &Request, view: View) -> Result<Response, Status> {
    answer(cluster, request, view, Kind::Node, |node, nodes, ctx| {
        let summary = summary(nodes, node["metadata"]["name"].as_str().unwrap_or_default(), ctx)?;
        Some(json!({"usage": usage(&summary["node"])?, "timestamp": summary["node"]["cpu"]["time"]}))
    })
}

/// The use of pods, container by container.
pub fn pods(cluster: &Cluster, request: &Request, view: View) -> Result<Response, Status> {
    let mut summaries: BTreeMap<String, Option<Value>> = BTreeMap::new();
    answer(cluster, request, view, Kind::Pod, move |pod, nodes, ctx| {
        let node = pod["spec"]["nodeName"].as_str()?.to_owned();
        let summary = summaries.entry(node.clone()).or_insert_with(|| summary(nodes, &node, ctx));
        let all = summary.as_ref()?["pods"].as_array()?;
        let measured = all.iter().find(|measured| measured["podRef"]["uid"] == pod["metadata"]["uid"])?;
        let containers = measured["containers"].as_array()?.iter();
        let containers: Vec<Value> = containers
            .filter_map(|container| Some(json!({"name": container["name"], "usage": usage(container)?})))
            .collect();
        let first = measured["containers"].get(0)?;
        Some(json!({"containers": containers, "timestamp": first["cpu"]["time"]}))
    })
}

/// Lists what is measured of the chosen objects, or tells it of one. What is not measured (yet) is not there.
fn answer(
    cluster: &Cluster,
    request: &Request,
    view: View,
    kind: Kind,
    mut measure: impl FnMut(&Value, &mut BTreeMap<String, Node>, &mut Ctx) -> Option<Value>,
) -> Result<Response, Status> {
    let selector = Selector::read(&request.query, view.resource.source)?;
    let target = &request.target;
    let (measured, version) = cluster.with(|world| {
        world.with(|_, nodes, ctx| {
            let all = ctx.store.list(kind, target.namespace.as_deref());
            let is_asked = |object: &&Arc<Value>| match &target.name {
                Some(name) => object["metadata"]["name"] == name.as_str(),
                None => selector.chooses(object),
            };
            let objects: Vec<Arc<Value>> = all.filter(is_asked).cloned().collect();
            let measured = objects.iter().filter_map(|object| {
                let told = measure(object, nodes, ctx)?;
                Some(Arc::new(complete(view, object, told)))
            });
            (measured.collect::<Vec<_>>(), ctx.store.version())
        })
    });
    match (&target.name, measured.first()) {
        (None, _) => Ok(view.many(&measured, json!({"resourceVersion": version.to_string()}))),
        (Some(_), Some(one)) => Ok(view.one(200, one, &[])),
        (Some(name), None) => Err(missing(view, target.namespace(), name)),
    }
}

/// The object around a measurement.
fn complete(view: View, object: &Value, told: Value) -> Value {
    let metadata = &object["metadata"];
    let mut kept = json!({"name": metadata["name"], "creationTimestamp": told["timestamp"]});
    for field in ["namespace", "labels"] {
        if let Some(value) = metadata.get(field) {
            kept[field] = value.clone();
        }
    }
    let mut complete = json!({
        "kind": view.resource.kind,
        "apiVersion": view.resource.api_version(),
        "metadata": kept,
        // cAdvisor's rates are over its last two measurements.
        "window": "10s",
    });
    if let (Some(complete), Value::Object(told)) = (complete.as_object_mut(), told) {
        complete.extend(told);
    }
    complete
}

fn summary(nodes: &mut BTreeMap<String, Node>, name: &str, ctx: &mut Ctx) -> Option<Value> {
    let node = nodes.get_mut(name).filter(|node| node.kubelet.running)?;
    let summary = node.kubelet.summary(false, &node.machine, ctx).ok()?;
    serde_json::to_value(summary).ok()
}

/// `usage` of a node or a container of a Summary.
fn usage(measured: &Value) -> Option<Value> {
    let cpu = measured["cpu"]["usageNanoCores"].as_u64().unwrap_or(0);
    let memory = measured["memory"]["workingSetBytes"].as_u64()?;
    Some(json!({"cpu": format!("{cpu}n"), "memory": format!("{}Ki", memory / 1024)}))
}

fn missing(view: View, namespace: &str, name: &str) -> Status {
    let full = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    Status {
        code: 404,
        reason: "NotFound",
        message: format!("{}.metrics.k8s.io {full:?} not found", view.resource.kind.to_lowercase()),
        details: Some(
            json!({"name": full, "group": "metrics.k8s.io", "kind": view.resource.kind.to_lowercase()}),
        ),
    }
}
