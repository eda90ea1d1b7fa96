//! The subresource `nodes/proxy`: requests to kubelets.

use axum::body::Body;
use axum::response::Response;

use super::request::ApiRequest;
use super::responses;
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::kubelet::http::connection_refused;
use crate::resource::{Kind, ObjectExt};

/// Forwards a request to a kubelet.
///
/// # Errors
/// 404 for an unknown node, 503 for a node without a kubelet.
pub(crate) fn proxy_to_kubelet(cluster: &Cluster, request: &ApiRequest) -> Result<Response, Status> {
    let name = node_name(request.path.name());
    cluster.with(|simulation| {
        simulation.with(|_, nodes, ctx| {
            let object = ctx.store.get(Kind::Node, "", name).cloned();
            let object = object.ok_or_else(|| Status::not_found(Kind::Node, name))?;
            let node = nodes.get_mut(name).ok_or_else(|| connection_refused(object.internal_ip()))?;
            let answer = node.kubelet.answer(&request.path.subpath, &node.machine, ctx);
            Ok(responses::with_body(answer.code, answer.content, Body::from(answer.body)))
        })
    })
}

/// Returns the node of a proxy path such as `https:worker:10250`.
fn node_name(name: &str) -> &str {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        [_, host, _] => host,
        [host, ..] => host,
        [] => name,
    }
}

#[cfg(test)]
mod tests {
    use super::node_name;

    #[test]
    fn parses_node_names() {
        assert_eq!(["w", "w:10250", "https:w:10250", "https:w:"].map(node_name), ["w"; 4]);
    }
}
