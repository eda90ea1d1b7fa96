//! `pods/P/log`: which container, and what its kubelet says.

mod container;
mod options;

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::unfold;
use serde_json::Value;
use tokio::time::sleep;

use super::proxy::address;
use super::request::Request;
use super::respond;
use crate::cluster::Cluster;
use crate::registry::Status;
use crate::store::Kind;
use crate::world::World;
use container::Wanted;
use options::Options;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// A container's log, and what is written to it later if it is followed.
pub fn log(cluster: &Cluster, request: &Request) -> Result<Response, Status> {
    let (namespace, name) = (request.target.namespace(), request.target.name());
    let options = Options::read(&request.query, name)?;
    let (text, follower) = cluster.with(|world| {
        let pod = world.store.get(Kind::Pod, namespace, name).cloned();
        let pod = pod.ok_or_else(|| Status::not_found(Kind::Pod, name))?;
        let container = container::chosen(&pod, &options.container)?;
        // A pod without a node has no log yet.
        let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) else {
            return Ok((String::new(), None));
        };
        let wanted = Wanted::new(&pod, node, container);
        let text = wanted.ask(world, &request.raw_query)?;
        let Some(options) = options.follow else { return Ok((text, None)) };
        let all = wanted.ask(world, &options.query)?.len();
        let left = options.limit.map(|limit| limit.saturating_sub(text.len()));
        let follower = Follower { cluster: cluster.clone(), wanted, query: options.query, read: all, left };
        Ok((text, Some(follower)))
    })?;
    let body = match follower {
        None => Body::from(text),
        Some(follower) => {
            let first = Some(text).filter(|text| !text.is_empty());
            Body::from_stream(unfold((first, follower), |(first, mut follower)| async {
                let piece = match first {
                    Some(first) => first,
                    None => follower.next().await?,
                };
                Some((Ok::<_, std::convert::Infallible>(Bytes::from(piece)), (None, follower)))
            }))
        }
    };
    Ok(respond::of(200, "text/plain", body))
}

/// One who follows a log.
struct Follower {
    cluster: Cluster,
    wanted: Wanted,
    /// The options that hold for all of the log.
    query: String,
    /// How much of the log was read.
    read: usize,
    /// How many bytes may still be sent.
    left: Option<usize>,
}

impl Follower {
    /// The next piece; nothing at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if self.left == Some(0) {
                return None;
            }
            let cluster = self.cluster.clone();
            let (over, text) = cluster.with(|world| {
                let over = self.wanted.is_over(&world.store);
                Some((over, self.wanted.ask(world, &self.query).ok()?))
            })?;
            let mut piece = text.get(self.read..).unwrap_or_default().to_owned();
            self.read = text.len().max(self.read);
            if let Some(left) = &mut self.left {
                let end = (0..=piece.len().min(*left)).rev().find(|end| piece.is_char_boundary(*end));
                piece.truncate(end.unwrap_or(0));
                *left -= piece.len();
            }
            if !piece.is_empty() {
                return Some(piece);
            }
            if over {
                return None;
            }
            sleep(LOOK).await;
        }
    }
}

impl Wanted {
    /// What the kubelet answers; the API server makes a `Status` of what is no success (`NewGenericHttpResponseChecker`).
    fn ask(&self, world: &mut World, query: &str) -> Result<String, Status> {
        world.with(|_, nodes, ctx| {
            let node = nodes.get(&self.node).filter(|node| node.kubelet.running);
            let Some(node) = node else {
                return Err(self.unreachable(ctx.store.get(Kind::Node, "", &self.node).map(|node| &**node)));
            };
            let (pod, container) = (&self.pod, &self.container);
            let answer =
                node.kubelet.container_log(&self.namespace, pod, container, query, &node.machine, ctx);
            match answer.code {
                200 => Ok(answer.text),
                400 => Err(Status::bad_request(answer.text)),
                404 => Err(Status { code: 404, reason: "NotFound", message: answer.text, details: None }),
                _ => Err(Status::internal(answer.text)),
            }
        })
    }

    /// 500 of a kubelet that does not answer.
    fn unreachable(&self, node: Option<&Value>) -> Status {
        let address = node.map_or("127.0.0.1", address);
        let Self { namespace, pod, container, .. } = self;
        Status::internal(format!(
            "Get \"https://{address}:10250/containerLogs/{namespace}/{pod}/{container}\": dial tcp {address}:10250: connect: connection refused"
        ))
    }
}
