//! `nodes/N/proxy`: what a kubelet answers.

use axum::body::Body;
use axum::response::Response;

use super::request::Request;
use super::respond;
use crate::cluster::Cluster;
use crate::registry::Status;
use crate::store::Kind;

/// Asks a kubelet.
pub fn node(cluster: &Cluster, request: &Request) -> Result<Response, Status> {
    let name = host(request.target.name());
    cluster.with(|world| {
        world.with(|_, nodes, ctx| {
            let object = ctx.store.get(Kind::Node, "", name).cloned();
            let object = object.ok_or_else(|| Status::not_found(Kind::Node, name))?;
            let node = nodes.get_mut(name).ok_or_else(|| {
                let address = address(&object);
                unavailable(format!(
                    "error trying to reach service: dial tcp {address}:10250: connect: connection refused"
                ))
            })?;
            let answer = node.kubelet.answer(&request.target.rest, &request.raw_query, &node.machine, ctx);
            Ok(respond::of(answer.code, answer.content, Body::from(answer.body)))
        })
    })
}

/// The node of a name such as `https:worker:10250`.
fn host(name: &str) -> &str {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        [_, host, _] => host,
        [host, ..] => host,
        [] => name,
    }
}

/// The node's address.
pub fn address(node: &serde_json::Value) -> &str {
    let addresses = node["status"]["addresses"].as_array();
    let internal = addresses.into_iter().flatten().find(|address| address["type"] == "InternalIP");
    internal.and_then(|address| address["address"].as_str()).unwrap_or("127.0.0.1")
}

fn unavailable(message: String) -> Status {
    Status { code: 503, reason: "ServiceUnavailable", message, details: None }
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn reads_the_names_of_nodes() {
        assert_eq!(["w", "w:10250", "https:w:10250", "https:w:"].map(host), ["w"; 4]);
    }
}
