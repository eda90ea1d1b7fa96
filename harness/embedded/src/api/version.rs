//! What the API server says of itself.

use axum::extract::State;
use axum::response::Response;
use evictlab_rules::KubeletVersion;
use serde_json::json;

use super::respond;
use crate::cluster::Cluster;
use crate::world::World;

/// The API server is as old as the newest kubelet: a kubelet may not be newer than its API server.
pub fn of(world: &World) -> KubeletVersion {
    let newest = world.nodes.values().map(|node| node.kubelet.identity.version.clone()).max();
    newest.unwrap_or_else(|| KubeletVersion::minor(36))
}

/// `/version`, with a suffix that says what it is.
pub async fn version(State(cluster): State<Cluster>) -> Response {
    let (version, built) = cluster.with(|world| (of(world), world.store.epoch.0));
    let plain = KubeletVersion { suffix: String::new(), ..version };
    respond::json(
        200,
        &json!({
            "major": plain.major.to_string(),
            "minor": plain.minor.to_string(),
            "gitVersion": format!("{plain}+evictlab"),
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": built.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "goVersion": "",
            "compiler": "",
            "platform": "linux/amd64",
        }),
    )
}

/// `/healthz` and its like.
pub async fn health() -> &'static str {
    "ok"
}
