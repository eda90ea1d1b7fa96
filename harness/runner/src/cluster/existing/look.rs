//! A look from within: a small pod tells of its node what the API does not.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::ExistingError;
use super::image::{container_status, run};
use crate::cluster::kind::available;
use crate::stage::Namespace;

/// Its exit status is 0 where the kernel has cgroup v2, whose root alone has this file; its termination message is what the kernel has of
/// memory, which may be more than the node is said to have, or less.
const SCRIPT: &str = "cat /proc/meminfo > /dev/termination-log; [ -e /sys/fs/cgroup/cgroup.controllers ]";

/// What was seen of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    /// Whether its kernel has cgroup v1.
    pub cgroup_v1: bool,
    /// What the kernel has available of memory, in bytes, if it told.
    pub available: Option<u64>,
}

/// Looks at a node.
pub(super) async fn look(namespace: &Namespace, node: &str, image: &str) -> Result<Looked, ExistingError> {
    let container = json!({"name": "look", "image": image, "command": ["sh", "-c", SCRIPT]});
    run(namespace, node, &format!("look-{node}"), container, looked).await
}

fn looked(pod: &Pod) -> Option<Looked> {
    let status = container_status(pod)?;
    let ended = &status["state"]["terminated"];
    let cgroup_v1 = match ended["exitCode"].as_i64()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(Looked { cgroup_v1, available: ended["message"].as_str().and_then(available) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn an_exit_status_and_a_message_are_what_was_seen() {
        let pod = |state: Value| -> Pod {
            let statuses = json!([{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]);
            serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": statuses}}))
                .unwrap()
        };
        let ended = |code: i64, message: Option<&str>| {
            pod(json!({"terminated": {"exitCode": code, "message": message}}))
        };
        let meminfo = "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   20480 kB\n";
        assert_eq!(
            looked(&ended(0, Some(meminfo))),
            Some(Looked { cgroup_v1: false, available: Some(20 << 20) })
        );
        assert_eq!(looked(&ended(1, None)), Some(Looked { cgroup_v1: true, available: None }));
        assert_eq!(looked(&ended(127, None)), None);
        assert_eq!(looked(&pod(json!({"running": {}}))), None);
    }
}
