//! Initial objects of a cluster.

use serde_json::json;

use super::context::ControllerContext;
use super::namespaces;
use crate::apiserver::{self, FieldValidation};
use crate::resource::Kind;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// System priority classes (`pkg/apis/scheduling/v1/helpers.go`).
const CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// Creates the initial objects.
pub(super) fn start(ctx: &mut ControllerContext) {
    let namespaces = NAMESPACES.map(|name| (Kind::Namespace, json!({"metadata": {"name": name}})));
    let classes = CLASSES.map(|(name, value, description)| {
        let class = json!({
            "metadata": {"name": name, "generation": 1},
            "value": value,
            "description": description,
        });
        (Kind::PriorityClass, class)
    });
    for (kind, object) in namespaces.into_iter().chain(classes) {
        // The store is empty and the objects are valid, so this cannot fail.
        let _ = apiserver::create(ctx, kind, "", object, FieldValidation::default());
    }
    for name in NAMESPACES {
        namespaces::create_defaults(name, ctx);
    }
}
