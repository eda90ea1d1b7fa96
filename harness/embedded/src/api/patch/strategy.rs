//! How a strategic merge patch treats each list: `patchStrategy` and `patchMergeKey` of `k8s.io/api/*/types.go`, for the kinds that are served.

use crate::store::Kind;

/// How a field is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The patch replaces it.
    Replace,
    /// Items with the same value of this field are one.
    MergeBy(&'static str),
    /// Plain values that are not there yet are added.
    MergeValues,
}

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// How a list at a path of field names is patched; items of lists add nothing to a path.
pub fn list(kind: Kind, path: &[&str]) -> Strategy {
    use Strategy::{MergeBy, MergeValues, Replace};
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
        // A template is patched as the pod is that it makes.
        (Kind::Deployment | Kind::ReplicaSet | Kind::Job, ["spec", "template", path @ ..]) => {
            list(Kind::Pod, path)
        }
        (Kind::Pod, ["spec", list]) => match *list {
            list if CONTAINERS.contains(&list) => MergeBy("name"),
            "volumes" | "imagePullSecrets" | "schedulingGates" | "resourceClaims" => MergeBy("name"),
            "hostAliases" => MergeBy("ip"),
            "topologySpreadConstraints" => MergeBy("topologyKey"),
            _ => Replace,
        },
        (Kind::Pod, ["spec", list, field]) if CONTAINERS.contains(list) => match *field {
            "env" => MergeBy("name"),
            "ports" => MergeBy("containerPort"),
            "volumeMounts" => MergeBy("mountPath"),
            "volumeDevices" => MergeBy("devicePath"),
            _ => Replace,
        },
        (Kind::Pod, ["status", "podIPs" | "hostIPs"]) => MergeBy("ip"),
        (Kind::Pod, ["status", "resourceClaimStatuses"]) => MergeBy("name"),
        (Kind::Node, ["spec", "podCIDRs"]) => MergeValues,
        (Kind::Node, ["status", "addresses"]) => MergeBy("type"),
        (Kind::ServiceAccount, ["secrets"]) => MergeBy("name"),
        _ => Replace,
    }
}

/// Whether the patch replaces an object at a path.
pub fn replaces_object(kind: Kind, path: &[&str]) -> bool {
    kind == Kind::PodDisruptionBudget && path == ["spec", "selector"]
}
