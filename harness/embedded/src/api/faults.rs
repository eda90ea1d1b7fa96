//! Where requests meet the faults of the script: before anything else has seen them. A watch that is open meets them in `objects::watch`.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::sleep;

use super::request::Target;
use super::respond;
use crate::cluster::Cluster;
use crate::fault::RequestFate;

/// Lets a request pass, sooner or later, or refuses it.
pub async fn pass(State(cluster): State<Cluster>, request: Request, next: Next) -> Response {
    let Some(target) = Target::read(request.uri().path()) else { return next.run(request).await };
    let node = target.name.as_deref().filter(|_| target.resource == "nodes");
    let namespace = match target.resource.as_str() {
        "namespaces" => target.name.as_deref(),
        _ => target.namespace.as_deref(),
    };
    let fate = cluster.with(|world| world.faults.request(world.now, &target.resource, namespace, node));
    match fate {
        RequestFate::Answered => {}
        RequestFate::Refused(status) => return respond::refuse(&status),
        RequestFate::Late(by) => sleep(by).await,
    }
    next.run(request).await
}
