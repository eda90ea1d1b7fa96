//! The resources that the API serves.

use std::fmt;

use super::request::Target;
use crate::apiserver::group;
use crate::resource::Kind;

/// A served resource.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Kind of the objects.
    pub(crate) kind: Kind,
    /// Short names for kubectl.
    pub(crate) short_names: &'static [&'static str],
    /// Supported verbs.
    pub(crate) verbs: &'static [Verb],
    /// Subresources.
    pub(crate) subresources: &'static [Subresource],
}

/// A subresource.
#[derive(Debug)]
pub(crate) struct Subresource {
    /// Name, as in paths.
    pub(crate) name: &'static str,
    /// Kind of the body.
    pub(crate) kind: &'static str,
    /// Group and version of the kind, if they differ from those of the resource.
    pub(crate) group_version: Option<(&'static str, &'static str)>,
    /// Supported verbs.
    pub(crate) verbs: &'static [Verb],
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

use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};

const ALL: &[Verb] = &[Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch];
const WITHOUT_DELETE_COLLECTION: &[Verb] = &[Create, Delete, Get, List, Patch, Update, Watch];
const GET_PATCH_UPDATE: &[Verb] = &[Get, Patch, Update];
const PROXY: &[Verb] = &[Create, Delete, Get, Patch, Update];

const fn subresource(name: &'static str, kind: &'static str, verbs: &'static [Verb]) -> Subresource {
    Subresource { name, kind, group_version: None, verbs }
}

const fn status(kind: &'static str) -> Subresource {
    subresource("status", kind, GET_PATCH_UPDATE)
}

const fn resource(
    kind: Kind,
    short_names: &'static [&'static str],
    subresources: &'static [Subresource],
) -> Resource {
    Resource { kind, short_names, verbs: ALL, subresources }
}

/// All resources, ordered by group.
pub(crate) static RESOURCES: &[Resource] = &[
    resource(Kind::ConfigMap, &["cm"], &[]),
    resource(Kind::Event, &["ev"], &[]),
    Resource {
        verbs: WITHOUT_DELETE_COLLECTION,
        ..resource(Kind::Namespace, &["ns"], &[status("Namespace")])
    },
    resource(Kind::Node, &["no"], &[subresource("proxy", "NodeProxyOptions", PROXY), status("Node")]),
    resource(
        Kind::Pod,
        &["po"],
        &[
            subresource("attach", "PodAttachOptions", &[Create, Get]),
            subresource("ephemeralcontainers", "Pod", GET_PATCH_UPDATE),
            Subresource {
                name: "eviction",
                kind: "Eviction",
                group_version: Some(("policy", "v1")),
                verbs: &[Create],
            },
            subresource("exec", "PodExecOptions", &[Create, Get]),
            subresource("log", "Pod", &[Get]),
            subresource("portforward", "PodPortForwardOptions", &[Create, Get]),
            subresource("proxy", "PodProxyOptions", PROXY),
            subresource("resize", "Pod", GET_PATCH_UPDATE),
            status("Pod"),
        ],
    ),
    resource(Kind::ResourceQuota, &["quota"], &[]),
    resource(Kind::ServiceAccount, &["sa"], &[]),
    resource(Kind::Deployment, &["deploy"], &[status("Deployment")]),
    resource(Kind::ReplicaSet, &["rs"], &[status("ReplicaSet")]),
    resource(Kind::Job, &[], &[status("Job")]),
    resource(Kind::Lease, &[], &[]),
    resource(Kind::RuntimeClass, &[], &[]),
    resource(Kind::PodDisruptionBudget, &["pdb"], &[status("PodDisruptionBudget")]),
    resource(Kind::PriorityClass, &["pc"], &[]),
];

/// Returns the resource that a path names.
pub(crate) fn find(target: &Target) -> Option<&'static Resource> {
    let is_target = |resource: &&Resource| {
        (resource.group(), resource.version(), resource.kind.plural())
            == (target.group.as_str(), target.version.as_str(), target.resource.as_str())
    };
    RESOURCES.iter().find(is_target)
}

impl Resource {
    /// Returns the API group; empty for the core group.
    pub(crate) fn group(&self) -> &'static str {
        group(self.kind)
    }

    /// Returns the API version.
    pub(crate) fn version(&self) -> &'static str {
        let api_version = self.api_version();
        api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
    }

    /// Returns the `apiVersion` of the objects.
    pub(crate) fn api_version(&self) -> &'static str {
        self.kind.names().1
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
    fn serves_every_kind_with_its_status() {
        for kind in Kind::ALL {
            let served = RESOURCES.iter().find(|resource| resource.kind == kind).unwrap();
            assert_eq!(served.subresource("status").is_some(), kind.has_status(), "{kind:?}");
        }
    }
}
