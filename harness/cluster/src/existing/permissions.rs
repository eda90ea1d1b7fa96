//! Required RBAC permissions, checked before the run creates anything.

use crate::typed::Typed;
use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// A resource, as `RESOURCE.GROUP` outside the core group, and its required verbs, in every
/// namespace.
pub type Permission = (&'static str, &'static [&'static str]);

/// Permissions to list nodes with their pods and statistics.
pub const READ_PERMISSIONS: [Permission; 3] =
    [("nodes", &["list"]), ("nodes/proxy", &["get"]), ("pods", &["list"])];

/// Permissions to watch nodes, pods and events.
pub const WATCH_PERMISSIONS: [Permission; 4] = [
    ("nodes", &["list", "watch"]),
    ("nodes/proxy", &["get"]),
    ("pods", &["list", "watch"]),
    ("events", &["list", "watch"]),
];

/// Permissions of all runs. They apply to every namespace, because the names of its namespaces are
/// generated.
pub const RUN_PERMISSIONS: [Permission; 8] = [
    ("nodes", &["get", "list", "watch"]),
    ("nodes/proxy", &["get"]),
    ("namespaces", &["create", "list", "delete"]),
    ("pods", &["create", "list", "watch", "delete", "deletecollection"]),
    ("pods/ephemeralcontainers", &["patch"]),
    ("events", &["list", "watch"]),
    ("leases.coordination.k8s.io", &["create", "list", "patch"]),
    ("resourcequotas", &["create"]),
];

/// Permissions that runs use if they have them: the addresses of the API servers show which nodes
/// are control planes.
pub const OPTIONAL_PERMISSIONS: [Permission; 1] = [("endpointslices.discovery.k8s.io", &["get"])];

/// Permissions that only some cases need, in their namespaces.
pub const CASE_PERMISSIONS: [Permission; 8] = [
    ("pods/log", &["get"]),
    ("pods/eviction", &["create"]),
    ("pods/resize", &["patch"]),
    ("daemonsets.apps", &["create", "get"]),
    ("deployments.apps", &["create", "get"]),
    ("statefulsets.apps", &["create", "get"]),
    ("jobs.batch", &["create", "get"]),
    ("poddisruptionbudgets.policy", &["create", "get", "patch"]),
];

/// Returns the permissions that the client lacks, as `VERB RESOURCE`. A permission that the cluster
/// cannot review counts as granted.
pub(super) async fn missing(client: &Client, permissions: &[Permission]) -> Vec<String> {
    let pairs =
        permissions.iter().flat_map(|(resource, verbs)| verbs.iter().map(move |verb| (*resource, *verb)));
    let reviews = join_all(pairs.map(async |(resource, verb)| {
        let allowed = is_allowed(client, resource, verb).await.unwrap_or(true);
        (!allowed).then(|| format!("{verb} {resource}"))
    }));
    reviews.await.into_iter().flatten().collect()
}

async fn is_allowed(client: &Client, resource: &str, verb: &str) -> Result<bool, kube::Error> {
    let (resource, group) = match resource.split_once('.') {
        Some((resource, group)) => (resource, Some(group.to_owned())),
        None => (resource, None),
    };
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group,
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<Typed<SelfSubjectAccessReview>> = Api::all(client.clone());
    let reviewed = api.create(&PostParams::default(), &Typed(review)).await?;
    Ok(reviewed.0.status.is_none_or(|status| status.allowed))
}
