//! Container logs as the kubelet serves them: `containerLogs/NAMESPACE/POD/CONTAINER`.

use std::time::Duration;

use jiff::Timestamp;

use crate::apiserver::{Status, StatusReason};
use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::machine::{LogLine, Machine};
use crate::resource::PodStatus;
use crate::sim::SimTime;

/// Path of a log request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPath<'a> {
    /// Namespace of the pod.
    pub namespace: &'a str,
    /// Name of the pod.
    pub pod: &'a str,
    /// Name of the container.
    pub container: &'a str,
}

/// `PodLogOptions`, validated by the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodLogOptions {
    /// The log of the container's previous run.
    pub previous: bool,
    /// Prefixes each line with its time.
    pub timestamps: bool,
    /// Maximum number of lines, counted from the end.
    pub tail_lines: Option<usize>,
    /// Maximum length in bytes.
    pub limit_bytes: Option<usize>,
    /// Omits lines that are older, in seconds.
    pub since_seconds: Option<u64>,
    /// Omits lines before a time.
    pub since_time: Option<Timestamp>,
}

impl Kubelet {
    /// Returns a container's log.
    ///
    /// # Errors
    /// The API server's Status for the error of the kubelet (`NewGenericHttpResponseChecker`).
    pub(crate) fn container_log(
        &self,
        path: LogPath,
        options: &PodLogOptions,
        machine: &Machine,
        ctx: &SimContext,
    ) -> Result<String, Status> {
        let LogPath { namespace, pod, container } = path;
        // Pods without an API object cannot be found by name.
        let mut workers = self.pods.workers.values().filter(|worker| !worker.removed);
        let named =
            workers.find(|worker| worker.manifest.namespace == namespace && worker.manifest.name == pod);
        let Some(worker) = named else {
            return Err(Status::new(StatusReason::NotFound, format!("pod {pod:?} does not exist")));
        };
        if worker.manifest.place(container).is_none() {
            let text = format!("container {container:?} not found in pod {pod:?}");
            return Err(Status::new(StatusReason::NotFound, text));
        }
        let id = find(worker.known_status(), container, pod, options.previous);
        let id = id.map_err(Status::bad_request)?;
        let bare = id.strip_prefix("containerd://").unwrap_or(&id);
        if self.pods.runtime.owner(bare).is_none() {
            // The response has already begun when the runtime fails, so the status is 200.
            return Ok(format!("unable to retrieve container logs for {id}"));
        }
        Ok(options.apply(machine.log(bare), ctx))
    }
}

/// Returns the ID of the container whose log is requested (`validateContainerLogStatus`).
fn find(status: &PodStatus, container: &str, pod: &str, previous: bool) -> Result<String, String> {
    let Some(container_status) = status.container(container) else {
        return Err(format!("container {container:?} in pod {pod:?} is not available"));
    };
    let id = |id: &Option<String>| id.clone().filter(|id| !id.is_empty());
    let last = container_status.last_terminated().and_then(|last| id(&last.container_id));
    if previous {
        return last
            .ok_or_else(|| format!("previous terminated container {container:?} in pod {pod:?} not found"));
    }
    if container_status.is_running() {
        return id(&container_status.container_id)
            .ok_or_else(|| format!("container {container:?} in pod {pod:?} is not available"));
    }
    let ended = || format!("container {container:?} in pod {pod:?} is terminated");
    if let Some(terminated) = &container_status.state.terminated {
        return id(&terminated.container_id).or(last).ok_or_else(ended);
    }
    if container_status.last_terminated().is_some() {
        return last.ok_or_else(ended);
    }
    let why = match container_status.waiting_reason() {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        reason => reason,
    };
    Err(format!("container {container:?} in pod {pod:?} is waiting to start: {why}"))
}

impl PodLogOptions {
    /// Returns the earliest time of the lines.
    fn since(&self, ctx: &SimContext) -> Option<SimTime> {
        let start = ctx.now.since_start();
        if let Some(seconds) = self.since_seconds {
            return Some(SimTime::from_start(start.saturating_sub(Duration::from_secs(seconds))));
        }
        let since = self.since_time?.duration_since(ctx.epoch().0);
        Some(SimTime::from_start(Duration::try_from(since).unwrap_or_default()))
    }

    fn apply(&self, lines: &[LogLine], ctx: &SimContext) -> String {
        // As in the kubelet, the tail is applied before `sinceTime`.
        let skip = self.tail_lines.map_or(0, |tail| lines.len().saturating_sub(tail));
        let since = self.since(ctx);
        let mut text = String::new();
        for line in &lines[skip..] {
            if since.is_some_and(|since| line.at < since) {
                continue;
            }
            if self.timestamps {
                let time = ctx.epoch().at(line.at).strftime("%Y-%m-%dT%H:%M:%S%.9fZ").to_string();
                text = text + &time + " ";
            }
            text += &line.text;
            if !line.partial || self.timestamps {
                text.push('\n');
            }
            if let Some(limit) = self.limit_bytes.filter(|limit| text.len() >= *limit) {
                let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                text.truncate(end);
                break;
            }
        }
        text
    }
}
