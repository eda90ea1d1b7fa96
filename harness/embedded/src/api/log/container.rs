//! Whose log is read.

use serde_json::Value;

use crate::registry::Status;
use crate::store::{Kind, Store};

/// A container whose log is read.
pub struct Wanted {
    /// The pod's node.
    pub node: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name in the pod.
    pub container: String,
    /// The pod's uid.
    uid: Value,
    /// How often it had been restarted.
    restarts: i64,
}

impl Wanted {
    /// A container of a pod on a node.
    pub fn new(pod: &Value, node: &str, container: String) -> Self {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let status = status(pod, &container);
        Self {
            node: node.to_owned(),
            namespace: text("namespace"),
            pod: text("name"),
            uid: pod["metadata"]["uid"].clone(),
            restarts: status["restartCount"].as_i64().unwrap_or(0),
            container,
        }
    }

    /// Whether the run is over, and nothing is written any more.
    pub fn is_over(&self, store: &Store) -> bool {
        let Some(pod) = store.get(Kind::Pod, &self.namespace, &self.pod) else { return true };
        let status = status(pod, &self.container);
        let state = &status["state"];
        let waits_again = state["waiting"].is_object() && status["lastState"]["terminated"].is_object();
        pod["metadata"]["uid"] != self.uid
            || state["terminated"].is_object()
            || waits_again
            || status["restartCount"].as_i64().unwrap_or(0) != self.restarts
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

/// The status of a container; nothing before it has one.
fn status<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    all.find(|status| status["name"] == container).unwrap_or(&Value::Null)
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
}
