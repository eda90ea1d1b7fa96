//! `pods/P/log`.

mod container;
mod options;

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::unfold;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::sleep;

use super::proxy::address;
use super::request::Request;
use super::respond;
use crate::cluster::Cluster;
use crate::node::Node;
use crate::registry::Status;
use crate::store::Kind;
use crate::time::Epoch;
use crate::world::World;
use container::Wanted;
use options::Options;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// A container's log, and what is written to it later if it is followed.
pub fn log(cluster: &Cluster, request: &Request) -> Result<Response, Status> {
    let (namespace, name) = (request.target.namespace(), request.target.name());
    let options = Options::read(&request.query, name)?;
    let follow = options.follow;
    let reader = cluster.with(|world| {
        let pod = world.store.get(Kind::Pod, namespace, name).cloned();
        let pod = pod.ok_or_else(|| Status::not_found(Kind::Pod, name))?;
        let container = container::chosen(&pod, &options.container)?;
        // A pod without a node has no log yet.
        let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) else {
            return Ok(None);
        };
        reachable(world, node, &pod, &container)?;
        let id = container::id(&pod, &container, options.previous)?;
        let wanted = Wanted { namespace: namespace.into(), pod: name.into(), container, id };
        Ok(Some(Reader {
            cluster: cluster.clone(),
            node: node.into(),
            wanted,
            options,
            read: None,
            over: false,
        }))
    })?;
    let body = match reader {
        Some(reader) if follow => Body::from_stream(unfold(reader, |mut reader| async {
            let piece = reader.next().await?;
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(piece)), reader))
        })),
        Some(mut reader) => Body::from(reader.piece()),
        None => Body::empty(),
    };
    Ok(respond::of(200, "text/plain", body))
}

/// 500 of a kubelet that does not answer.
fn reachable(world: &World, name: &str, pod: &Value, container: &str) -> Result<(), Status> {
    if world.nodes.get(name).is_some_and(|node| node.kubelet.running) {
        return Ok(());
    }
    let node = world.store.get(Kind::Node, "", name);
    let address = node.map_or("127.0.0.1", |node| address(node));
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let (namespace, pod) = (text("namespace"), text("name"));
    Err(Status::internal(format!(
        "Get \"https://{address}:10250/containerLogs/{namespace}/{pod}/{container}\": dial tcp {address}:10250: connect: connection refused"
    )))
}

/// One who reads a log.
struct Reader {
    cluster: Cluster,
    node: String,
    wanted: Wanted,
    options: Options,
    /// How many lines were read; nothing before the first look.
    read: Option<usize>,
    /// Nothing follows.
    over: bool,
}

impl Reader {
    /// The next piece of a followed log; nothing at its end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        while !self.over {
            let piece = self.piece();
            if !piece.is_empty() {
                return Some(piece);
            }
            if !self.over {
                sleep(LOOK).await;
            }
        }
        None
    }

    /// What was written since the last look.
    fn piece(&mut self) -> Vec<u8> {
        let cluster = self.cluster.clone();
        cluster.with(|world| {
            let now = world.store.epoch.at(world.now);
            let Some(node) = world.nodes.get(&self.node) else {
                self.over = true;
                return Vec::new();
            };
            self.over = !self.wanted.runs(&world.store);
            self.lines(node, world.store.epoch, now)
        })
    }

    fn lines(&mut self, node: &Node, epoch: Epoch, now: Timestamp) -> Vec<u8> {
        let all = node.machine.log(&self.wanted.id);
        let from = match self.read {
            Some(read) => read.min(all.len()),
            None => {
                let since = self.options.since(now);
                let old = all.partition_point(|line| since.is_some_and(|since| epoch.at(line.at) < since));
                let tail = self.options.tail.map_or(0, |tail| all.len().saturating_sub(tail));
                old.max(tail)
            }
        };
        self.read = Some(all.len());
        let mut text = Vec::new();
        for line in &all[from..] {
            if self.options.timestamps {
                let at = epoch.at(line.at).strftime("%Y-%m-%dT%H:%M:%S%.9fZ ");
                text.extend_from_slice(at.to_string().as_bytes());
            }
            text.extend_from_slice(line.text.as_bytes());
            text.push(b'\n');
        }
        if let Some(limit) = &mut self.options.limit {
            text.truncate(*limit);
            *limit -= text.len();
            self.over |= *limit == 0;
        }
        text
    }
}
