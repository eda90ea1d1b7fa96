//! Whose log is read.

use serde_json::Value;

use crate::machine::ContainerId;
use crate::registry::Status;
use crate::store::{Kind, Store};

/// A run of a container.
pub struct Wanted {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name in the pod.
    pub container: String,
    /// What the machine calls the run.
    pub id: ContainerId,
}

impl Wanted {
    /// Whether something may still be written.
    pub fn runs(&self, store: &Store) -> bool {
        let pod = store.get(Kind::Pod, &self.namespace, &self.pod);
        let status = pod.and_then(|pod| status(pod, &self.container));
        status.is_some_and(|status| {
            status["state"]["running"].is_object() && plain(&status["containerID"]) == Some(self.id.as_str())
        })
    }
}

/// Init, regular and ephemeral containers, as messages name them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The container that is asked for; without a name, the only one (`pkg/registry/core/pod/strategy.go`, `LogLocation`).
pub fn chosen(pod: &Value, asked: &str) -> Result<String, Status> {
    let names = |list: &str| {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).map(str::to_owned).collect::<Vec<_>>()
    };
    let all: Vec<String> = LISTS.into_iter().flat_map(names).collect();
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    if !asked.is_empty() {
        return match all.iter().any(|container| container == asked) {
            true => Ok(asked.to_owned()),
            false => Err(Status::bad_request(format!("container {asked} is not valid for pod {name}"))),
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

/// Which run of a container is meant (`validateContainerLogStatus` of the kubelet).
pub fn id(pod: &Value, container: &str, previous: bool) -> Result<ContainerId, Status> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let refuse = |what: String| Err(Status::bad_request(what));
    let Some(status) = status(pod, container) else {
        return refuse(format!("container {container:?} in pod {name:?} is not available"));
    };
    let state = &status["state"];
    let last = &status["lastState"]["terminated"];
    let found = if previous {
        match plain(&last["containerID"]) {
            None => {
                return refuse(format!(
                    "previous terminated container {container:?} in pod {name:?} not found"
                ));
            }
            found => found,
        }
    } else if state["running"].is_object() {
        plain(&status["containerID"])
    } else {
        let ended = plain(&state["terminated"]["containerID"]).or_else(|| plain(&last["containerID"]));
        if ended.is_none() && state["terminated"].is_object() {
            return refuse(format!("container {container:?} in pod {name:?} is terminated"));
        }
        ended
    };
    if let Some(found) = found {
        return Ok(found.to_owned());
    }
    let place = format!("container {container:?} in pod {name:?} is waiting to start");
    refuse(match state["waiting"]["reason"].as_str() {
        Some("ErrImagePull") => format!("{place}: image can't be pulled"),
        Some("ImagePullBackOff") => format!("{place}: trying and failing to pull image"),
        Some(reason) => format!("{place}: {reason}"),
        None => format!("{place} - no logs yet"),
    })
}

fn status<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    all.find(|status| status["name"] == container)
}

/// What the machine calls a container, without the runtime's name before it.
fn plain(id: &Value) -> Option<&str> {
    let id = id.as_str()?;
    Some(id.split_once("://").map_or(id, |(_, id)| id)).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn asks_for_a_name_where_there_are_several() {
        let one = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        assert_eq!(chosen(&one, ""), Ok("c".into()));
        let several = json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c1"}, {"name": "c2"}], "initContainers": [{"name": "i1"}], "ephemeralContainers": [{"name": "e1"}],
        }});
        let message = |asked| chosen(&several, asked).unwrap_err().message;
        assert_eq!(message(""), "a container name must be specified for pod p, choose one of: [i1 c1 c2 e1]");
        assert_eq!(message("x"), "container x is not valid for pod p");
        assert_eq!(chosen(&several, "e1"), Ok("e1".into()));
    }

    #[test]
    fn finds_the_run() {
        let pod =
            |status: Value| json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [status]}});
        let id = |status: Value, previous| id(&pod(status), "c", previous).map_err(|status| status.message);
        let ended = |id: &str| json!({"terminated": {"containerID": id}});
        let running = json!({"name": "c", "containerID": "containerd://b", "state": {"running": {}}, "lastState": ended("containerd://a")});
        assert_eq!(id(running.clone(), false), Ok("b".into()));
        assert_eq!(id(running, true), Ok("a".into()));
        assert_eq!(id(json!({"name": "c", "state": ended("x://d")}), false), Ok("d".into()));
        let backoff = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert_eq!(
            id(json!({"name": "c", "state": backoff, "lastState": ended("x://d")}), false),
            Ok("d".into())
        );
        let waiting = |reason: &str| {
            id(json!({"name": "c", "state": {"waiting": {"reason": reason}}}), false).unwrap_err()
        };
        assert_eq!(
            waiting("ContainerCreating"),
            r#"container "c" in pod "p" is waiting to start: ContainerCreating"#
        );
        assert_eq!(
            waiting("ErrImagePull"),
            r#"container "c" in pod "p" is waiting to start: image can't be pulled"#
        );
        let unknown = json!({"terminated": {"reason": "ContainerStatusUnknown"}});
        assert_eq!(
            id(json!({"name": "c", "state": unknown}), false),
            Err(r#"container "c" in pod "p" is terminated"#.into())
        );
        assert_eq!(
            id(json!({"name": "c", "state": {"running": {}}}), true),
            Err(r#"previous terminated container "c" in pod "p" not found"#.into())
        );
        assert_eq!(
            id(json!({"name": "x"}), false),
            Err(r#"container "c" in pod "p" is not available"#.into())
        );
    }
}
