//! The resources that the API serves.

use std::fmt;

use super::request::ResourcePath;
use crate::resource::{Kind, Scope};

/// A resource in a version of an API group.
#[derive(Debug)]
pub(crate) struct Resource {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    /// API version.
    pub(crate) version: &'static str,
    /// Plural name, as in paths.
    pub(crate) plural: &'static str,
    /// Short names for kubectl.
    pub(crate) short_names: &'static [&'static str],
    /// Kind of the objects.
    pub(crate) kind: &'static str,
    /// Namespaced or cluster-scoped.
    pub(crate) scope: Scope,
    /// Supported verbs.
    pub(crate) verbs: &'static [Verb],
    /// Subresources.
    pub(crate) subresources: &'static [Subresource],
    /// Kind in the store; `None` for objects that are created only to be answered.
    pub(crate) stored: Option<Kind>,
}

/// A subresource.
#[derive(Debug)]
pub(crate) struct Subresource {
    /// Name, as in paths.
    pub(crate) name: &'static str,
    /// Function of the subresource.
    pub(crate) kind: SubresourceKind,
    /// Kind of the body.
    pub(crate) body_kind: &'static str,
    /// Group and version of the body's kind, if they differ from those of the resource.
    pub(crate) group_version: Option<(&'static str, &'static str)>,
    /// Supported verbs.
    pub(crate) verbs: &'static [Verb],
}

/// The function of a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubresourceKind {
    /// `status` of the stored object.
    Status,
    /// Ephemeral containers of a pod.
    EphemeralContainers,
    /// Resources of the containers of a pod.
    Resize,
    /// Eviction of a pod by the API.
    Eviction,
    /// Logs of the containers of a pod.
    Log,
    /// Requests to the kubelet of a node.
    NodeProxy,
    /// Listed in discovery, but answered with 501.
    NotSimulated,
}

/// A verb of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        })
    }
}

use SubresourceKind::{EphemeralContainers, Eviction, Log, NodeProxy, NotSimulated, Resize, Status};
use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};

const ALL: &[Verb] = &[Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch];
const WITHOUT_DELETE_COLLECTION: &[Verb] = &[Create, Delete, Get, List, Patch, Update, Watch];
const GET_PATCH_UPDATE: &[Verb] = &[Get, Patch, Update];
const PROXY: &[Verb] = &[Create, Delete, Get, Patch, Update];

const fn subresource(
    name: &'static str,
    kind: SubresourceKind,
    body_kind: &'static str,
    verbs: &'static [Verb],
) -> Subresource {
    Subresource { name, kind, body_kind, group_version: None, verbs }
}

const fn status(body_kind: &'static str) -> Subresource {
    subresource("status", Status, body_kind, GET_PATCH_UPDATE)
}

/// A stored resource of the core group.
const fn core(
    kind: Kind,
    short_names: &'static [&'static str],
    subresources: &'static [Subresource],
) -> Resource {
    Resource {
        group: "",
        version: "v1",
        plural: kind.plural(),
        short_names,
        kind: kind.names().0,
        scope: kind.scope(),
        verbs: ALL,
        subresources,
        stored: Some(kind),
    }
}

const fn in_group(group: &'static str, resource: Resource) -> Resource {
    Resource { group, ..resource }
}

/// All resources, ordered by group.
pub(crate) static API_RESOURCES: &[Resource] = &[
    core(Kind::ConfigMap, &["cm"], &[]),
    core(Kind::Event, &["ev"], &[]),
    Resource { verbs: WITHOUT_DELETE_COLLECTION, ..core(Kind::Namespace, &["ns"], &[status("Namespace")]) },
    core(Kind::Node, &["no"], &[subresource("proxy", NodeProxy, "NodeProxyOptions", PROXY), status("Node")]),
    core(
        Kind::Pod,
        &["po"],
        &[
            subresource("attach", NotSimulated, "PodAttachOptions", &[Create, Get]),
            subresource("ephemeralcontainers", EphemeralContainers, "Pod", GET_PATCH_UPDATE),
            Subresource {
                name: "eviction",
                kind: Eviction,
                body_kind: "Eviction",
                group_version: Some(("policy", "v1")),
                verbs: &[Create],
            },
            subresource("exec", NotSimulated, "PodExecOptions", &[Create, Get]),
            subresource("log", Log, "Pod", &[Get]),
            subresource("portforward", NotSimulated, "PodPortForwardOptions", &[Create, Get]),
            subresource("proxy", NotSimulated, "PodProxyOptions", PROXY),
            subresource("resize", Resize, "Pod", GET_PATCH_UPDATE),
            status("Pod"),
        ],
    ),
    core(Kind::ResourceQuota, &["quota"], &[]),
    core(Kind::ServiceAccount, &["sa"], &[]),
    in_group("apps", core(Kind::Deployment, &["deploy"], &[status("Deployment")])),
    in_group("apps", core(Kind::ReplicaSet, &["rs"], &[status("ReplicaSet")])),
    Resource {
        group: "authorization.k8s.io",
        version: "v1",
        plural: "selfsubjectaccessreviews",
        short_names: &[],
        kind: "SelfSubjectAccessReview",
        scope: Scope::Cluster,
        verbs: &[Create],
        subresources: &[],
        stored: None,
    },
    in_group("batch", core(Kind::Job, &[], &[status("Job")])),
    in_group("coordination.k8s.io", core(Kind::Lease, &[], &[])),
    in_group("node.k8s.io", core(Kind::RuntimeClass, &[], &[])),
    in_group("policy", core(Kind::PodDisruptionBudget, &["pdb"], &[status("PodDisruptionBudget")])),
    in_group("scheduling.k8s.io", core(Kind::PriorityClass, &["pc"], &[])),
];

/// Returns the resource that a path names.
pub(crate) fn find(path: &ResourcePath) -> Option<&'static Resource> {
    let is_named = |resource: &&Resource| {
        (resource.group, resource.version, resource.plural)
            == (path.group.as_str(), path.version.as_str(), path.resource.as_str())
    };
    API_RESOURCES.iter().find(is_named)
}

impl Resource {
    /// Returns the `apiVersion` of the objects.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns a subresource by its name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_every_stored_kind_under_its_names() {
        for kind in Kind::ALL {
            let served = API_RESOURCES.iter().find(|resource| resource.stored == Some(kind)).unwrap();
            assert_eq!((served.kind, served.api_version().as_str()), kind.names());
            assert_eq!((served.plural, served.scope), (kind.plural(), kind.scope()));
            assert_eq!(served.subresource("status").is_some(), kind.has_status(), "{kind:?}");
        }
    }
}
