//! What has to be allowed in a cluster, asked before anything is made.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// Verbs on a resource, in every namespace.
pub type Right = (&'static str, &'static [&'static str]);

/// What one look at nodes and the pods on them takes.
pub const TO_LOOK: [Right; 3] = [("nodes", &["list"]), ("nodes/proxy", &["get"]), ("pods", &["list"])];

/// What watching them takes.
pub const TO_WATCH: [Right; 4] = [
    ("nodes", &["list", "watch"]),
    ("nodes/proxy", &["get"]),
    ("pods", &["list", "watch"]),
    ("events", &["list", "watch"]),
];

/// What a run takes; its namespaces have names of their own.
pub(super) const TO_RUN: [Right; 6] = [
    ("nodes", &["get", "list", "watch"]),
    ("nodes/proxy", &["get"]),
    ("namespaces", &["create", "list", "delete"]),
    ("pods", &["create", "get", "list", "watch", "delete", "deletecollection"]),
    ("pods/ephemeralcontainers", &["patch"]),
    ("events", &["list", "watch"]),
];

/// What the client may not do, as `list nodes`. A cluster that does not tell is taken at its later word.
pub(super) async fn missing(client: &Client, rights: &[Right]) -> Vec<String> {
    let asked = rights.iter().flat_map(|(resource, verbs)| verbs.iter().map(move |verb| (*resource, *verb)));
    let answers = join_all(asked.map(async |(resource, verb)| {
        let allowed = allowed(client, resource, verb).await.unwrap_or(true);
        (!allowed).then(|| format!("{verb} {resource}"))
    }));
    answers.await.into_iter().flatten().collect()
}

async fn allowed(client: &Client, resource: &str, verb: &str) -> Result<bool, kube::Error> {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_none_or(|status| status.allowed))
}
