//! Merge strategies of lists: `patchStrategy` and `patchMergeKey` of `k8s.io/api/*/types.go`, for
//! the served kinds.

use crate::resource::{ALL_CONTAINER_LISTS, Kind};

/// Merge strategy of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListStrategy {
    /// The patch replaces the list.
    Replace,
    /// Items with the same value of this field are merged.
    MergeBy(&'static str),
    /// Missing values are added.
    MergeValues,
}

/// Returns the strategy of the list at a path of field names; list items add nothing to the path.
pub(crate) fn list_strategy(kind: Kind, path: &[&str]) -> ListStrategy {
    use ListStrategy::{MergeBy, MergeValues, Replace};
    match (kind, path) {
        (_, ["metadata", "ownerReferences"]) => MergeBy("uid"),
        (_, ["metadata", "finalizers"]) => MergeValues,
        (
            Kind::Pod
            | Kind::Node
            | Kind::Namespace
            | Kind::PodDisruptionBudget
            | Kind::Deployment
            | Kind::ReplicaSet
            | Kind::Job,
            ["status", "conditions"],
        ) => MergeBy("type"),
        // Pod templates are patched like pods.
        (Kind::Deployment | Kind::ReplicaSet | Kind::Job, ["spec", "template", path @ ..]) => {
            list_strategy(Kind::Pod, path)
        }
        (Kind::Pod, ["spec", list]) => match *list {
            list if ALL_CONTAINER_LISTS.contains(&list) => MergeBy("name"),
            "volumes" | "imagePullSecrets" => MergeBy("name"),
            _ => Replace,
        },
        (Kind::Pod, ["spec", list, field]) if ALL_CONTAINER_LISTS.contains(list) => match *field {
            "env" => MergeBy("name"),
            "ports" => MergeBy("containerPort"),
            "volumeMounts" => MergeBy("mountPath"),
            _ => Replace,
        },
        (Kind::Pod, ["status", "podIPs" | "hostIPs"]) => MergeBy("ip"),
        (Kind::Node, ["spec", "podCIDRs"]) => MergeValues,
        (Kind::Node, ["status", "addresses"]) => MergeBy("type"),
        (Kind::ServiceAccount, ["secrets"]) => MergeBy("name"),
        _ => Replace,
    }
}

/// Returns whether a patch replaces the object at a path instead of merging it.
pub(crate) fn replaces_object(kind: Kind, path: &[&str]) -> bool {
    kind == Kind::PodDisruptionBudget && path == ["spec", "selector"]
}
