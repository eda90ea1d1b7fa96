//! What is served.

use super::request::Target;
use crate::store::{Kind, Scope};

/// A resource in one version of one group.
#[derive(Debug)]
pub struct Resource {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The version in the group.
    pub version: &'static str,
    /// The name in a path.
    pub plural: &'static str,
    /// For kubectl.
    pub singular: &'static str,
    /// For kubectl.
    pub short: &'static [&'static str],
    /// `kind`
    pub kind: &'static str,
    /// Where its objects live.
    pub scope: Scope,
    /// What can be done.
    pub verbs: &'static [&'static str],
    /// Its parts.
    pub subresources: &'static [Subresource],
    /// Where its objects come from.
    pub source: Source,
}

/// A part of a resource, or something that can be done with it.
#[derive(Debug)]
pub struct Subresource {
    /// The name in a path.
    pub name: &'static str,
    /// `kind`
    pub kind: &'static str,
    /// Group and version, if they are not the resource's.
    pub of: Option<(&'static str, &'static str)>,
    /// What can be done.
    pub verbs: &'static [&'static str],
}

/// Where objects come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The store has them so.
    Stored(Kind),
    /// The store has them in the core's form.
    NewEvents,
    /// Pods say that they belong to them.
    DaemonSets,
    /// Kubelets measure it: the use of nodes.
    NodeMetrics,
    /// Kubelets measure it: the use of pods.
    PodMetrics,
    /// Only created: a pod gets its node.
    Bindings,
    /// Only created: whether something is allowed.
    AccessReviews,
}

impl Source {
    /// The kind in the store.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::Stored(kind) => Some(kind),
            Self::NewEvents => Some(Kind::Event),
            _ => None,
        }
    }
}

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ: &[&str] = &["get", "list"];
const CREATE: &[&str] = &["create"];
const GET: &[&str] = &["get"];
const WRITE: &[&str] = &["get", "patch", "update"];

const STATUS: &str = "status";
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];

const fn part(name: &'static str, kind: &'static str, verbs: &'static [&'static str]) -> Subresource {
    Subresource { name, kind, of: None, verbs }
}

const fn core(kind: Kind, short: &'static [&'static str], subresources: &'static [Subresource]) -> Resource {
    let (name, singular, plural, scope) = match kind {
        Kind::Namespace => ("Namespace", "namespace", "namespaces", Scope::Cluster),
        Kind::Node => ("Node", "node", "nodes", Scope::Cluster),
        Kind::Pod => ("Pod", "pod", "pods", Scope::Namespaced),
        Kind::Event => ("Event", "event", "events", Scope::Namespaced),
        Kind::ServiceAccount => ("ServiceAccount", "serviceaccount", "serviceaccounts", Scope::Namespaced),
        Kind::ConfigMap => ("ConfigMap", "configmap", "configmaps", Scope::Namespaced),
        Kind::PriorityClass => ("PriorityClass", "priorityclass", "priorityclasses", Scope::Cluster),
        Kind::PodDisruptionBudget => {
            ("PodDisruptionBudget", "poddisruptionbudget", "poddisruptionbudgets", Scope::Namespaced)
        }
        Kind::Lease => ("Lease", "lease", "leases", Scope::Namespaced),
        Kind::Deployment => ("Deployment", "deployment", "deployments", Scope::Namespaced),
        Kind::ReplicaSet => ("ReplicaSet", "replicaset", "replicasets", Scope::Namespaced),
        Kind::Job => ("Job", "job", "jobs", Scope::Namespaced),
    };
    Resource {
        group: "",
        version: "v1",
        plural,
        singular,
        short,
        kind: name,
        scope,
        verbs: ALL,
        subresources,
        source: Source::Stored(kind),
    }
}

const fn in_group(group: &'static str, resource: Resource) -> Resource {
    Resource { group, ..resource }
}

/// A resource of the core of which nothing is stored.
const fn made(plural: &'static str, kind: &'static str, scope: Scope, source: Source) -> Resource {
    Resource {
        group: "",
        version: "v1",
        plural,
        singular: "",
        short: &[],
        kind,
        scope,
        verbs: READ,
        subresources: &[],
        source,
    }
}

/// All that is served, by group.
pub static RESOURCES: &[Resource] = &[
    Resource {
        singular: "binding",
        verbs: CREATE,
        ..made("bindings", "Binding", Scope::Namespaced, Source::Bindings)
    },
    core(Kind::ConfigMap, &["cm"], &[]),
    core(Kind::Event, &["ev"], &[]),
    Resource {
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        ..core(
            Kind::Namespace,
            &["ns"],
            &[part("finalize", "Namespace", &["update"]), part(STATUS, "Namespace", WRITE)],
        )
    },
    core(Kind::Node, &["no"], &[part("proxy", "NodeProxyOptions", PROXY), part(STATUS, "Node", WRITE)]),
    core(
        Kind::Pod,
        &["po"],
        &[
            part("attach", "PodAttachOptions", &["create", "get"]),
            part("binding", "Binding", CREATE),
            part("ephemeralcontainers", "Pod", WRITE),
            Subresource { name: "eviction", kind: "Eviction", of: Some(("policy", "v1")), verbs: CREATE },
            part("exec", "PodExecOptions", &["create", "get"]),
            part("log", "Pod", GET),
            part("portforward", "PodPortForwardOptions", &["create", "get"]),
            part("proxy", "PodProxyOptions", PROXY),
            part(STATUS, "Pod", WRITE),
        ],
    ),
    core(Kind::ServiceAccount, &["sa"], &[]),
    Resource {
        group: "apps",
        singular: "daemonset",
        short: &["ds"],
        ..made("daemonsets", "DaemonSet", Scope::Namespaced, Source::DaemonSets)
    },
    in_group("apps", core(Kind::Deployment, &["deploy"], &[part(STATUS, "Deployment", WRITE)])),
    in_group("apps", core(Kind::ReplicaSet, &["rs"], &[part(STATUS, "ReplicaSet", WRITE)])),
    Resource {
        group: "authorization.k8s.io",
        singular: "selfsubjectaccessreview",
        verbs: CREATE,
        ..made("selfsubjectaccessreviews", "SelfSubjectAccessReview", Scope::Cluster, Source::AccessReviews)
    },
    in_group("batch", core(Kind::Job, &[], &[part(STATUS, "Job", WRITE)])),
    in_group("coordination.k8s.io", core(Kind::Lease, &[], &[])),
    Resource { group: "events.k8s.io", source: Source::NewEvents, ..core(Kind::Event, &["ev"], &[]) },
    Resource {
        group: "metrics.k8s.io",
        version: "v1beta1",
        ..made("nodes", "NodeMetrics", Scope::Cluster, Source::NodeMetrics)
    },
    Resource {
        group: "metrics.k8s.io",
        version: "v1beta1",
        ..made("pods", "PodMetrics", Scope::Namespaced, Source::PodMetrics)
    },
    in_group(
        "policy",
        core(Kind::PodDisruptionBudget, &["pdb"], &[part(STATUS, "PodDisruptionBudget", WRITE)]),
    ),
    in_group("scheduling.k8s.io", core(Kind::PriorityClass, &["pc"], &[])),
];

/// The resource that a path names.
pub fn find(target: &Target) -> Option<&'static Resource> {
    let same = |resource: &&Resource| {
        (resource.group, resource.version, resource.plural)
            == (target.group.as_str(), target.version.as_str(), target.resource.as_str())
    };
    RESOURCES.iter().find(same)
}

impl Resource {
    /// `apiVersion`
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// A part by its name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|part| part.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_served_as_it_is_stored() {
        for kind in Kind::ALL {
            let served = RESOURCES.iter().find(|resource| resource.source == Source::Stored(kind)).unwrap();
            assert_eq!((served.kind, served.api_version().as_str()), kind.names());
            assert_eq!((served.plural, served.scope), (kind.plural(), kind.scope()));
        }
    }
}
