//! Typed reading of container statuses.

use serde_json::Value;

use super::ObjectExt;

/// State of a container in its status.
pub(crate) trait ContainerStatusExt {
    /// Returns whether the container waits.
    fn is_waiting(&self) -> bool;
    /// Returns why the container waits.
    fn waiting_reason(&self) -> &str;
    /// Returns whether the container runs.
    fn is_running(&self) -> bool;
    /// Returns the end of the container.
    fn terminated(&self) -> Option<&Value>;
    /// Returns the end of the container's previous run.
    fn last_terminated(&self) -> Option<&Value>;
}

impl ContainerStatusExt for Value {
    fn is_waiting(&self) -> bool {
        self["state"]["waiting"].is_object()
    }

    fn waiting_reason(&self) -> &str {
        self["state"]["waiting"].text("reason")
    }

    fn is_running(&self) -> bool {
        self["state"]["running"].is_object()
    }

    fn terminated(&self) -> Option<&Value> {
        self["state"].get("terminated").filter(|terminated| terminated.is_object())
    }

    fn last_terminated(&self) -> Option<&Value> {
        self["lastState"].get("terminated").filter(|terminated| terminated.is_object())
    }
}

/// Returns the status of the container with a name, of any kind.
pub(crate) fn find<'a>(pod_status: &'a Value, name: &str) -> Option<&'a Value> {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    lists.into_iter().flat_map(|list| pod_status.items(list)).find(|status| status["name"] == name)
}

/// Returns the exit code of a container that has terminated.
pub(crate) fn exit_code(terminated: Option<&Value>) -> Option<i64> {
    terminated?["exitCode"].as_i64()
}
