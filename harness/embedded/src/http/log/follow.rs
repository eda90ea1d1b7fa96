//! Reading and following of container logs.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::unfold;
use tokio::time::sleep;

use super::container::{LoggedContainer, select_container};
use super::options::LogRequest;
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::http::request::ApiRequest;
use crate::http::responses;
use crate::kubelet::pods::PodLogOptions;
use crate::resource::{Kind, ObjectExt};

/// Interval in which a followed log is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Handles GET of a container's log; streams new output if the log is followed.
pub(crate) fn log(cluster: &Cluster, request: &ApiRequest) -> Result<Response, Status> {
    let (namespace, name) = (request.path.namespace(), request.path.name());
    let LogRequest { container, follow, options } = LogRequest::from_query(&request.query)?;
    let (text, follower) = cluster.with(|simulation| {
        let pod = simulation.store.get(Kind::Pod, namespace, name).cloned();
        let pod = pod.ok_or_else(|| Status::not_found(Kind::Pod, name))?;
        let container = select_container(&pod, &container)?;
        // A pod without a node has an empty log.
        let node = pod.node_name();
        if node.is_empty() {
            return Ok((String::new(), None));
        }
        let container = LoggedContainer::new(&pod, node, container);
        let text = container.read_log(simulation, &options)?;
        if !follow {
            return Ok((text, None));
        }
        let PodLogOptions { previous, timestamps, limit_bytes, .. } = options;
        let whole = PodLogOptions { previous, timestamps, ..PodLogOptions::default() };
        let position = container.read_log(simulation, &whole)?.len();
        let remaining = limit_bytes.map(|limit| limit.saturating_sub(text.len()));
        let cluster = cluster.clone();
        let follower = Follower { cluster, container, options: whole, position, remaining };
        Ok((text, Some(follower)))
    })?;
    let body = match follower {
        None => Body::from(text),
        Some(follower) => {
            let first = Some(text).filter(|text| !text.is_empty());
            Body::from_stream(unfold((first, follower), |(first, mut follower)| async {
                let chunk = match first {
                    Some(first) => first,
                    None => follower.next_chunk().await?,
                };
                Some((Ok::<_, Infallible>(Bytes::from(chunk)), (None, follower)))
            }))
        }
    };
    Ok(responses::with_body(200, "text/plain", body))
}

/// A followed log.
struct Follower {
    cluster: Cluster,
    container: LoggedContainer,
    /// Options of every read, which select the whole log.
    options: PodLogOptions,
    /// Number of bytes that were read.
    position: usize,
    /// Number of bytes that may still be sent.
    remaining: Option<usize>,
}

impl Follower {
    /// Returns new output; `None` at the end of the log.
    async fn next_chunk(&mut self) -> Option<String> {
        loop {
            if self.remaining == Some(0) {
                return None;
            }
            let cluster = self.cluster.clone();
            let (is_complete, text) = cluster.with(|simulation| {
                let is_complete = self.container.is_complete(&simulation.store);
                Some((is_complete, self.container.read_log(simulation, &self.options).ok()?))
            })?;
            let mut chunk = text.get(self.position..).unwrap_or_default().to_owned();
            self.position = text.len().max(self.position);
            if let Some(remaining) = &mut self.remaining {
                let mut ends = (0..=chunk.len().min(*remaining)).rev();
                chunk.truncate(ends.find(|end| chunk.is_char_boundary(*end)).unwrap_or(0));
                *remaining -= chunk.len();
            }
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if is_complete {
                return None;
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}
