//! Container logs as the kubelet serves them: `containerLogs/NAMESPACE/POD/CONTAINER`.

use std::time::Duration;

use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::machine::{LogLine, Machine};
use crate::resource::PodStatus;
use crate::sim::Time;

/// Response to a log request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogAnswer {
    /// HTTP status. The API server converts errors to a `Status` with the same message.
    pub code: u16,
    /// Log or error message.
    pub text: String,
}

/// Supported fields of `PodLogOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    previous: bool,
    timestamps: bool,
    tail: Option<usize>,
    limit: Option<usize>,
    since: Option<Time>,
    stream: Option<bool>,
}

impl Kubelet {
    /// Returns a container's log. `query` may be URL-encoded: no supported value needs decoding.
    pub fn container_log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        query: &str,
        machine: &Machine,
        ctx: &SimContext,
    ) -> LogAnswer {
        let Some(options) = Options::read(query, ctx) else {
            return LogAnswer { code: 422, text: "{\"message\": \"Invalid request.\"}".to_owned() };
        };
        // Pods without an API object cannot be found by name.
        let mut workers = self.pods.workers.values().filter(|worker| !worker.removed);
        let named =
            workers.find(|worker| worker.manifest.namespace == namespace && worker.manifest.name == pod);
        let Some(worker) = named else {
            return LogAnswer { code: 404, text: format!("pod {pod:?} does not exist") };
        };
        if worker.manifest.place(container).is_none() {
            let text = format!("container {container:?} not found in pod {pod:?}");
            return LogAnswer { code: 404, text };
        }
        let id = match find(worker.known_status(), container, pod, options.previous) {
            Ok(id) => id,
            Err(text) => return LogAnswer { code: 400, text },
        };
        let bare = id.strip_prefix("containerd://").unwrap_or(&id);
        if self.pods.runtime.owner(bare).is_none() {
            // The response has already begun when the runtime fails, so the status is 200.
            return LogAnswer { code: 200, text: format!("unable to retrieve container logs for {id}") };
        }
        LogAnswer { code: 200, text: options.apply(machine.log(bare), ctx) }
    }
}

/// Returns the ID of the container whose log is requested (`validateContainerLogStatus`).
fn find(status: &PodStatus, container: &str, pod: &str, previous: bool) -> Result<String, String> {
    let Some(of) = status.container(container) else {
        return Err(format!("container {container:?} in pod {pod:?} is not available"));
    };
    let id = |id: &Option<String>| id.clone().filter(|id| !id.is_empty());
    let last = of.last_terminated().and_then(|last| id(&last.container_id));
    if previous {
        return last
            .ok_or_else(|| format!("previous terminated container {container:?} in pod {pod:?} not found"));
    }
    if of.is_running() {
        return id(&of.container_id)
            .ok_or_else(|| format!("container {container:?} in pod {pod:?} is not available"));
    }
    let ended = || format!("container {container:?} in pod {pod:?} is terminated");
    if let Some(terminated) = &of.state.terminated {
        return id(&terminated.container_id).or(last).ok_or_else(ended);
    }
    if of.last_terminated().is_some() {
        return last.ok_or_else(ended);
    }
    let why = match of.waiting_reason() {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        reason => reason,
    };
    Err(format!("container {container:?} in pod {pod:?} is waiting to start: {why}"))
}

impl Options {
    fn read(query: &str, ctx: &SimContext) -> Option<Self> {
        let mut options = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let yes = matches!(value, "true" | "1");
            match name {
                "previous" => options.previous = yes,
                "timestamps" => options.timestamps = yes,
                "tailLines" => options.tail = Some(value.parse().ok()?),
                "limitBytes" => options.limit = Some(value.parse().ok().filter(|limit| *limit > 0)?),
                "sinceSeconds" => {
                    let seconds: u64 = value.parse().ok().filter(|seconds| *seconds > 0)?;
                    let ago = ctx.now.since_start().saturating_sub(Duration::from_secs(seconds));
                    options.since = Some(Time::after(ago));
                }
                "sinceTime" => {
                    let text = value.replace("%3A", ":").replace("%3a", ":");
                    let time: jiff::Timestamp = text.parse().ok()?;
                    let since = time.duration_since(ctx.epoch().0);
                    options.since = Some(Time::after(Duration::try_from(since).unwrap_or_default()));
                }
                "stream" => {
                    options.stream = match value {
                        "Stdout" => Some(false),
                        "Stderr" => Some(true),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        Some(options)
    }

    fn apply(&self, lines: &[LogLine], ctx: &SimContext) -> String {
        // As in the kubelet, the tail is applied before `sinceTime`.
        let wanted = |line: &&LogLine| self.stream.is_none_or(|stderr| line.stderr == stderr);
        let lines: Vec<&LogLine> = lines.iter().filter(wanted).collect();
        let skip = self.tail.map_or(0, |tail| lines.len().saturating_sub(tail));
        let mut text = String::new();
        for line in &lines[skip..] {
            if self.since.is_some_and(|since| line.at < since) {
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
            if let Some(limit) = self.limit.filter(|limit| text.len() >= *limit) {
                let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                text.truncate(end);
                break;
            }
        }
        text
    }
}
