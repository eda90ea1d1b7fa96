//! Discovery of API groups and resources.
//!
//! Aggregated discovery is not served: clients fall back to one request per group.

use axum::extract::Path;
use axum::response::Response;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResource, APIResourceList, APIVersions, GroupVersionForDiscovery,
    ServerAddressByClientCIDR,
};

use super::resource::{API_RESOURCES, Resource, Verb};
use super::{errors, responses};
use crate::resource::{Kind, Scope};

/// Handles `/api`.
pub(crate) async fn core_versions() -> Response {
    let address = ServerAddressByClientCIDR {
        client_cidr: "0.0.0.0/0".to_owned(),
        server_address: "127.0.0.1".to_owned(),
    };
    let versions =
        APIVersions { versions: vec!["v1".to_owned()], server_address_by_client_cidrs: vec![address] };
    responses::json(200, &versions)
}

/// Handles `/apis`.
pub(crate) async fn groups() -> Response {
    let mut names: Vec<&str> = API_RESOURCES.iter().map(|resource| resource.group).collect();
    names.retain(|name| !name.is_empty());
    names.dedup();
    responses::json(200, &APIGroupList { groups: names.into_iter().filter_map(api_group).collect() })
}

/// Handles `/apis/GROUP`.
pub(crate) async fn group(Path(name): Path<String>) -> Response {
    match api_group(&name) {
        Some(group) => responses::json(200, &group),
        None => responses::error(&errors::unknown_path(&format!("/apis/{name}"))),
    }
}

/// Handles `/api/VERSION`.
pub(crate) async fn core_resources(Path(version): Path<String>) -> Response {
    resources(Path((String::new(), version))).await
}

/// Handles `/apis/GROUP/VERSION`.
pub(crate) async fn resources(Path((group, version)): Path<(String, String)>) -> Response {
    let served =
        API_RESOURCES.iter().filter(|resource| (resource.group, resource.version) == (&group, &version));
    let resources: Vec<APIResource> = served.flat_map(api_resources).collect();
    let group_version = if group.is_empty() { version } else { format!("{group}/{version}") };
    if resources.is_empty() {
        return responses::error(&errors::unknown_path(&format!("/apis/{group_version}")));
    }
    responses::json(200, &APIResourceList { group_version, resources })
}

fn api_group(name: &str) -> Option<APIGroup> {
    let resource = API_RESOURCES.iter().find(|resource| resource.group == name)?;
    let version = GroupVersionForDiscovery {
        group_version: resource.api_version(),
        version: resource.version.to_owned(),
    };
    Some(APIGroup {
        name: name.to_owned(),
        versions: vec![version.clone()],
        preferred_version: Some(version),
        server_address_by_client_cidrs: None,
    })
}

/// Returns a resource and its subresources.
fn api_resources(resource: &Resource) -> Vec<APIResource> {
    let namespaced = resource.scope == Scope::Namespaced;
    let verbs = |verbs: &[Verb]| verbs.iter().map(Verb::to_string).collect();
    let own = APIResource {
        name: resource.plural.to_owned(),
        singular_name: resource.kind.to_lowercase(),
        kind: resource.kind.to_owned(),
        verbs: verbs(resource.verbs),
        short_names: Some(resource.short_names.iter().map(|name| (*name).to_owned()).collect()),
        categories: is_in_category_all(resource).then(|| vec!["all".to_owned()]),
        namespaced,
        ..APIResource::default()
    };
    let subresources = resource.subresources.iter().map(|subresource| APIResource {
        name: format!("{}/{}", resource.plural, subresource.name),
        kind: subresource.body_kind.to_owned(),
        verbs: verbs(subresource.verbs),
        group: subresource.group_version.map(|(group, _)| group.to_owned()),
        version: subresource.group_version.map(|(_, version)| version.to_owned()),
        namespaced,
        ..APIResource::default()
    });
    std::iter::once(own).chain(subresources).collect()
}

/// Returns whether `kubectl get all` lists a resource.
fn is_in_category_all(resource: &Resource) -> bool {
    use Kind::{Deployment, Job, Pod, ReplicaSet};
    matches!(resource.stored, Some(Pod | Deployment | ReplicaSet | Job))
}
