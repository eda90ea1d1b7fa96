//! The container run of a log request.

use serde_json::Value;

use crate::apiserver::Status;
use crate::kubelet::http::{DEFAULT_ADDRESS, KUBELET_PORT, dial_refused};
use crate::kubelet::pods::{LogPath, PodLogOptions};
use crate::resource::pod_status::ContainerStatus;
use crate::resource::{Kind, ObjectExt, PodStatus};
use crate::simulation::Simulation;
use crate::storage::Store;

/// The run of a container whose log is read.
pub(crate) struct LoggedContainer {
    node: String,
    namespace: String,
    pod: String,
    container: String,
    /// Uid of the pod.
    uid: String,
    /// Restart count of the run.
    restarts: u64,
}

impl LoggedContainer {
    /// Returns the current run of a container of a pod on a node.
    pub(crate) fn new(pod: &Value, node: &str, container: String) -> Self {
        let status = container_status(pod, &container);
        Self {
            node: node.to_owned(),
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
            restarts: status.restart_count,
            container,
        }
    }

    /// Returns whether the run has ended and its log is complete.
    pub(crate) fn is_complete(&self, store: &Store) -> bool {
        let Some(pod) = store.get(Kind::Pod, &self.namespace, &self.pod) else { return true };
        let status = container_status(pod, &self.container);
        let is_restarting = status.is_waiting() && status.last_terminated().is_some();
        pod.uid() != self.uid
            || status.is_terminated()
            || is_restarting
            || status.restart_count != self.restarts
    }

    /// Reads the log from the kubelet.
    pub(crate) fn read_log(
        &self,
        simulation: &mut Simulation,
        options: &PodLogOptions,
    ) -> Result<String, Status> {
        simulation.with(|_, nodes, ctx| {
            let Some(node) = nodes.get(&self.node).filter(|node| node.kubelet.running) else {
                let node = ctx.store.get(Kind::Node, "", &self.node);
                return Err(self.connection_refused(node.map(|node| &**node)));
            };
            let path = LogPath { namespace: &self.namespace, pod: &self.pod, container: &self.container };
            node.kubelet.container_log(path, options, &node.machine, ctx)
        })
    }

    /// Returns the 500 Status of a request to a stopped kubelet.
    fn connection_refused(&self, node: Option<&Value>) -> Status {
        let address = node.and_then(Value::internal_ip);
        let host = address.unwrap_or(DEFAULT_ADDRESS);
        let Self { namespace, pod, container, .. } = self;
        let url = format!("https://{host}:{KUBELET_PORT}/containerLogs/{namespace}/{pod}/{container}");
        Status::internal(format!("Get {url:?}: {}", dial_refused(address)))
    }
}

/// Container lists of a pod spec, in the order in which `LogLocation` lists the names.
const LISTS_IN_LOG_ERRORS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Returns the requested container, or the only one if the request does not name one
/// (`pkg/registry/core/pod/strategy.go`, `LogLocation`).
pub(crate) fn select_container(pod: &Value, requested: &str) -> Result<String, Status> {
    let names = |list: &str| {
        let containers = pod.spec().items(list);
        containers.map(|container| container.text("name").to_owned()).collect::<Vec<_>>()
    };
    let all: Vec<String> = LISTS_IN_LOG_ERRORS.into_iter().flat_map(names).collect();
    let name = pod.name();
    if !requested.is_empty() {
        return if all.iter().any(|container| container == requested) {
            Ok(requested.to_owned())
        } else {
            Err(Status::bad_request(format!("container {requested} is not valid for pod {name}")))
        };
    }
    match (&all[..], &names("containers")[..]) {
        ([_], [only]) => Ok(only.clone()),
        _ => Err(Status::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
    }
}

/// Returns the status of a container; an empty one before its first status.
fn container_status(pod: &Value, container: &str) -> ContainerStatus {
    PodStatus::of(pod).container(container).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requires_a_name_if_there_are_several_containers() {
        let one = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        assert_eq!(select_container(&one, ""), Ok("c".into()));
        let several = json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c1"}, {"name": "c2"}], "initContainers": [{"name": "i1"}], "ephemeralContainers": [{"name": "e1"}],
        }});
        let message = |name| select_container(&several, name).unwrap_err().message;
        assert_eq!(message(""), "a container name must be specified for pod p, choose one of: [i1 c1 c2 e1]");
        assert_eq!(message("x"), "container x is not valid for pod p");
        assert_eq!(select_container(&several, "e1"), Ok("e1".into()));
    }
}
