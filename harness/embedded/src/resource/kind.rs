//! Kinds of objects.

/// Scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects belong to the cluster.
    Cluster,
}

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// v1
    Namespace,
    /// v1
    Node,
    /// v1
    Pod,
    /// v1
    Event,
    /// v1
    ServiceAccount,
    /// v1
    ConfigMap,
    /// v1; only `count/pods` is enforced
    ResourceQuota,
    /// scheduling.k8s.io/v1
    PriorityClass,
    /// node.k8s.io/v1
    RuntimeClass,
    /// policy/v1
    PodDisruptionBudget,
    /// coordination.k8s.io/v1
    Lease,
    /// apps/v1
    Deployment,
    /// apps/v1
    ReplicaSet,
    /// batch/v1
    Job,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Namespace,
        Self::Node,
        Self::Pod,
        Self::Event,
        Self::ServiceAccount,
        Self::ConfigMap,
        Self::ResourceQuota,
        Self::PriorityClass,
        Self::RuntimeClass,
        Self::PodDisruptionBudget,
        Self::Lease,
        Self::Deployment,
        Self::ReplicaSet,
        Self::Job,
    ];

    /// Returns `kind` and `apiVersion`.
    pub(crate) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Namespace => ("Namespace", "v1"),
            Self::Node => ("Node", "v1"),
            Self::Pod => ("Pod", "v1"),
            Self::Event => ("Event", "v1"),
            Self::ServiceAccount => ("ServiceAccount", "v1"),
            Self::ConfigMap => ("ConfigMap", "v1"),
            Self::ResourceQuota => ("ResourceQuota", "v1"),
            Self::PriorityClass => ("PriorityClass", "scheduling.k8s.io/v1"),
            Self::RuntimeClass => ("RuntimeClass", "node.k8s.io/v1"),
            Self::PodDisruptionBudget => ("PodDisruptionBudget", "policy/v1"),
            Self::Lease => ("Lease", "coordination.k8s.io/v1"),
            Self::Deployment => ("Deployment", "apps/v1"),
            Self::ReplicaSet => ("ReplicaSet", "apps/v1"),
            Self::Job => ("Job", "batch/v1"),
        }
    }

    /// Returns the resource name in paths, such as `pods`.
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::Pod => "pods",
            Self::Event => "events",
            Self::ServiceAccount => "serviceaccounts",
            Self::ConfigMap => "configmaps",
            Self::ResourceQuota => "resourcequotas",
            Self::PriorityClass => "priorityclasses",
            Self::RuntimeClass => "runtimeclasses",
            Self::PodDisruptionBudget => "poddisruptionbudgets",
            Self::Lease => "leases",
            Self::Deployment => "deployments",
            Self::ReplicaSet => "replicasets",
            Self::Job => "jobs",
        }
    }

    /// Returns whether objects have the subresource `status`.
    pub(crate) const fn has_status(self) -> bool {
        match self {
            Self::Namespace
            | Self::Node
            | Self::Pod
            | Self::PodDisruptionBudget
            | Self::Deployment
            | Self::ReplicaSet
            | Self::Job => true,
            Self::Event
            | Self::ServiceAccount
            | Self::ConfigMap
            | Self::ResourceQuota
            | Self::PriorityClass
            | Self::RuntimeClass
            | Self::Lease => false,
        }
    }

    /// Returns the scope.
    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::Namespace | Self::Node | Self::PriorityClass | Self::RuntimeClass => Scope::Cluster,
            _ => Scope::Namespaced,
        }
    }
}
