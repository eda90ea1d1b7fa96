//! OpenAPI, no more than what `kubectl` looks for: that PATCH of a kind has the parameter `fieldValidation` (`query_param_verifier_v3.go`), so that
//! it leaves validation to the server. There are no schemas.

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::refusal;
use super::resource::{RESOURCES, Resource};
use super::respond::{self, refuse};
use crate::cluster::Cluster;
use crate::store::Scope;

/// `/openapi/v3`: which groups there are.
pub async fn index(State(_): State<Cluster>) -> Response {
    let paths: Map<String, Value> = RESOURCES
        .iter()
        .map(|resource| {
            let path = path(resource);
            let address = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
            (path, address)
        })
        .collect();
    respond::json(200, &json!({"paths": paths}))
}

/// `/openapi/v3/api/v1` and the like.
pub async fn v3(State(_): State<Cluster>, Path(wanted): Path<String>) -> Response {
    let here: Vec<&Resource> = RESOURCES.iter().filter(|resource| path(resource) == wanted).collect();
    if here.is_empty() {
        return refuse(&refusal::no_path(&format!("/openapi/v3/{wanted}")));
    }
    let paths = paths(&here, "3");
    respond::json(200, &json!({"openapi": "3.0.0", "info": info(), "paths": paths, "components": {}}))
}

/// `/openapi/v2`
pub async fn v2(State(_): State<Cluster>) -> Response {
    let all: Vec<&Resource> = RESOURCES.iter().collect();
    let paths = paths(&all, "2");
    respond::json(200, &json!({"swagger": "2.0", "info": info(), "paths": paths, "definitions": {}}))
}

fn info() -> Value {
    json!({"title": "evictlab's embedded cluster", "version": "v1"})
}

fn path(resource: &Resource) -> String {
    match resource.group {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

fn paths(resources: &[&Resource], openapi: &str) -> Map<String, Value> {
    let patched = resources.iter().filter(|resource| resource.verbs.contains(&"patch"));
    patched
        .map(|resource| {
            let namespace = if resource.scope == Scope::Namespaced { "namespaces/{namespace}/" } else { "" };
            let path = format!("/{}/{namespace}{}/{{name}}", path(resource), resource.plural);
            (path, json!({"patch": patch(resource, openapi)}))
        })
        .collect()
}

fn patch(resource: &Resource, openapi: &str) -> Value {
    let parameter = |place: &str, name: &str| {
        let mut parameter = json!({"name": name, "in": place});
        match openapi {
            "2" => parameter["type"] = json!("string"),
            _ => parameter["schema"] = json!({"type": "string"}),
        }
        if place == "path" {
            parameter["required"] = json!(true);
        }
        parameter
    };
    let mut parameters = vec![parameter("path", "name")];
    if resource.scope == Scope::Namespaced {
        parameters.push(parameter("path", "namespace"));
    }
    parameters.extend(["dryRun", "fieldManager", "fieldValidation"].map(|name| parameter("query", name)));
    json!({
        "operationId": format!("patch{}", resource.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
    })
}
