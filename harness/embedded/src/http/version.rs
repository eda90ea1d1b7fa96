//! Version and health of the API server.

use axum::extract::State;
use axum::response::Response;
use evictlab_rules::KubeletVersion;
use k8s_openapi::apimachinery::pkg::version::Info;

use super::responses;
use crate::apiserver::control_plane_version;
use crate::cluster::Cluster;

/// Handles `/version`. The suffix `+evictlab` marks the embedded cluster.
pub(crate) async fn version(State(cluster): State<Cluster>) -> Response {
    let (version, epoch) =
        cluster.with(|simulation| simulation.with_context(|ctx| (control_plane_version(ctx), ctx.epoch().0)));
    let version = KubeletVersion { suffix: String::new(), ..version };
    let info = Info {
        major: version.major.to_string(),
        minor: version.minor.to_string(),
        git_version: format!("{version}+evictlab"),
        git_tree_state: "clean".to_owned(),
        build_date: epoch.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        platform: "linux/amd64".to_owned(),
        ..Info::default()
    };
    responses::json(200, &info)
}

/// Handles `/healthz`, `/livez` and `/readyz`.
pub(crate) async fn health() -> &'static str {
    "ok"
}
