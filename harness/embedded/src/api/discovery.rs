//! Discovery: which resources there are.

use axum::extract::{Path, State};
use axum::response::Response;
use http::HeaderMap;
use serde_json::{Value, json};

use super::refusal;
use super::request::{Accept, Form};
use super::resource::{RESOURCES, Resource, Source};
use super::respond::{self, refuse};
use crate::cluster::Cluster;
use crate::store::{Kind, Scope};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`
pub async fn versions(State(_): State<Cluster>, headers: HeaderMap) -> Response {
    match wanted(&headers) {
        Form::Discovery => aggregated(&[""]),
        _ => respond::json(
            200,
            &json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
            }),
        ),
    }
}

/// `/apis`
pub async fn groups(State(_): State<Cluster>, headers: HeaderMap) -> Response {
    match wanted(&headers) {
        Form::Discovery => aggregated(&named()),
        _ => {
            let groups: Vec<Value> = named().into_iter().map(group_object).collect();
            respond::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
    }
}

/// `/apis/GROUP`
pub async fn group(State(_): State<Cluster>, Path(group): Path<String>) -> Response {
    match named().into_iter().find(|name| *name == group) {
        Some(name) => {
            let mut object = group_object(name);
            object["kind"] = json!("APIGroup");
            object["apiVersion"] = json!("v1");
            respond::json(200, &object)
        }
        None => refuse(&refusal::no_path(&format!("/apis/{group}"))),
    }
}

/// `/api/v1`
pub async fn core(State(cluster): State<Cluster>, Path(version): Path<String>) -> Response {
    resources(State(cluster), Path((String::new(), version))).await
}

/// `/apis/GROUP/VERSION`
pub async fn resources(State(_): State<Cluster>, Path((group, version)): Path<(String, String)>) -> Response {
    let here = RESOURCES.iter().filter(|resource| (resource.group, resource.version) == (&group, &version));
    let listed: Vec<Value> = here.flat_map(listed).collect();
    let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
    if listed.is_empty() {
        return refuse(&refusal::no_path(&format!("/apis/{api_version}")));
    }
    respond::json(
        200,
        &json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": api_version,
            "resources": listed,
        }),
    )
}

fn wanted(headers: &HeaderMap) -> Form {
    Accept::read(headers).unwrap_or_default().form
}

/// The groups that have a name, in order, each once.
fn named() -> Vec<&'static str> {
    let mut groups: Vec<&str> = RESOURCES.iter().map(|resource| resource.group).collect();
    groups.retain(|group| !group.is_empty());
    groups.dedup();
    groups
}

fn version_of(group: &str) -> &'static str {
    RESOURCES.iter().find(|resource| resource.group == group).map_or("v1", |resource| resource.version)
}

fn group_object(group: &str) -> Value {
    let version = version_of(group);
    let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

/// A resource and its parts in an `APIResourceList`.
fn listed(resource: &Resource) -> Vec<Value> {
    let namespaced = resource.scope == Scope::Namespaced;
    let mut object = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short.is_empty() {
        object["shortNames"] = json!(resource.short);
    }
    if is_common(resource) {
        object["categories"] = json!(["all"]);
    }
    let part = |part: &super::resource::Subresource| {
        let mut object = json!({
            "name": format!("{}/{}", resource.plural, part.name),
            "singularName": "",
            "namespaced": namespaced,
            "kind": part.kind,
            "verbs": part.verbs,
        });
        if let Some((group, version)) = part.of {
            object["group"] = json!(group);
            object["version"] = json!(version);
        }
        object
    };
    std::iter::once(object).chain(resource.subresources.iter().map(part)).collect()
}

/// Whether `kubectl get all` means it too.
fn is_common(resource: &Resource) -> bool {
    use Kind::{Deployment, Job, Pod, ReplicaSet};
    matches!(resource.source, Source::Stored(Pod | Deployment | ReplicaSet | Job) | Source::DaemonSets)
}

/// `APIGroupDiscoveryList` of some groups.
fn aggregated(groups: &[&str]) -> Response {
    let items: Vec<Value> = groups.iter().map(|group| aggregated_group(group)).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    match serde_json::to_vec(&list) {
        Ok(bytes) => respond::of(200, AGGREGATED, bytes.into()),
        Err(error) => respond::text_of(500, "text/plain", error.to_string()),
    }
}

fn aggregated_group(group: &str) -> Value {
    let here = RESOURCES.iter().filter(|resource| resource.group == group);
    let resources: Vec<Value> = here.map(aggregated_resource).collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({
        "metadata": metadata,
        "versions": [{"version": version_of(group), "resources": resources, "freshness": "Current"}],
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |kind: &str, of: Option<(&str, &str)>| {
        let (group, version) = of.unwrap_or((resource.group, resource.version));
        json!({"group": group, "version": version, "kind": kind})
    };
    let parts = resource.subresources.iter().map(|part| {
        json!({"subresource": part.name, "responseKind": kind(part.kind, part.of), "verbs": part.verbs})
    });
    let mut object = json!({
        "resource": resource.plural,
        "responseKind": kind(resource.kind, None),
        "scope": if resource.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short.is_empty() {
        object["shortNames"] = json!(resource.short);
    }
    if is_common(resource) {
        object["categories"] = json!(["all"]);
    }
    let parts: Vec<Value> = parts.collect();
    if !parts.is_empty() {
        object["subresources"] = json!(parts);
    }
    object
}
