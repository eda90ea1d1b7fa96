//! What every cluster has from its beginning.

use serde_json::json;

use super::namespaces;
use crate::registry::{self, Create};
use crate::store::Kind;
use crate::world::Ctx;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The system's priority classes (`pkg/apis/scheduling/v1/helpers.go`).
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

/// Makes it.
pub(super) fn start(ctx: &mut Ctx) {
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
        // The store is empty, and these are good: nothing can be refused.
        let _ = registry::create(ctx, kind, "", object, Create::default());
    }
    for name in NAMESPACES {
        namespaces::furnish(name, ctx);
    }
}
