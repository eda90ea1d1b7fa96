//! OpenAPI v3 without schemas.
//!
//! kubectl leaves validation to the server if PATCH of a kind has the parameter `fieldValidation`
//! (`query_param_verifier_v3.go`).

use axum::extract::Path;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::resource::{API_RESOURCES, Resource, Verb};
use super::{errors, responses};
use crate::resource::Scope;

/// Handles `/openapi/v3`: lists the API groups.
pub(crate) async fn index() -> Response {
    let paths: Map<String, Value> = API_RESOURCES
        .iter()
        .map(|resource| {
            let path = group_path(resource);
            let entry = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
            (path, entry)
        })
        .collect();
    responses::json(200, &json!({"paths": paths}))
}

/// Handles `/openapi/v3/api/v1` and other groups.
pub(crate) async fn document(Path(path): Path<String>) -> Response {
    let resources: Vec<&Resource> =
        API_RESOURCES.iter().filter(|resource| group_path(resource) == path).collect();
    if resources.is_empty() {
        return responses::error(&errors::unknown_path(&format!("/openapi/v3/{path}")));
    }
    let patchable = resources.into_iter().filter(|resource| resource.verbs.contains(&Verb::Patch));
    let paths: Map<String, Value> = patchable
        .map(|resource| {
            let namespace = if resource.scope == Scope::Namespaced { "namespaces/{namespace}/" } else { "" };
            let path = format!("/{path}/{namespace}{}/{{name}}", resource.plural);
            (path, json!({"patch": patch_operation(resource)}))
        })
        .collect();
    let info = json!({"title": "evictlab's embedded cluster", "version": "v1"});
    responses::json(200, &json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {}}))
}

fn group_path(resource: &Resource) -> String {
    let prefix = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", resource.api_version())
}

fn patch_operation(resource: &Resource) -> Value {
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let path =
        |name: &str| json!({"name": name, "in": "path", "schema": {"type": "string"}, "required": true});
    let mut parameters = vec![path("name")];
    if resource.scope == Scope::Namespaced {
        parameters.push(path("namespace"));
    }
    parameters.extend(["fieldManager", "fieldValidation"].map(query));
    json!({
        "operationId": format!("patch{}", resource.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind":
            {"group": resource.group, "version": resource.version, "kind": resource.kind},
    })
}
