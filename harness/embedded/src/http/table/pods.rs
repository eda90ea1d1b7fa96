//! Table of pods (`printPod`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use crate::resource::pod_status::{ContainerStatus, TerminatedState};
use crate::resource::{ObjectExt, PodStatus};

/// Returns the cells of a pod.
pub(crate) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let status = PodStatus::of(pod);
    let summary = PodSummary::of(pod, &status);
    let ip = status.pod_ips.as_deref().and_then(|ips| ips.first()).map(|first| first.ip.as_str());
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, age(Some(last), now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        json!(pod.name()),
        json!(format!("{}/{}", summary.ready, summary.containers)),
        json!(summary.status),
        json!(restarts),
        json!(age(pod.created(), now)),
        json!(ip.unwrap_or("<none>")),
        json!(pod.spec().text_or("nodeName", "<none>")),
        json!(status.nominated_node_name.as_deref().unwrap_or("<none>")),
        // Readiness gates are not modelled.
        json!("<none>"),
    ]
}

/// Returns the condition of the row of a terminated pod.
pub(crate) fn completed_condition(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod.phase() {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// Status of the containers of a pod.
struct PodSummary {
    status: String,
    restarts: u64,
    last_restart: Option<Timestamp>,
    ready: usize,
    containers: usize,
}

impl PodSummary {
    fn of(pod: &Value, status: &PodStatus) -> Self {
        let mut summary = Self {
            status: pod.status().text_or("reason", pod.phase()).to_owned(),
            restarts: 0,
            last_restart: None,
            ready: 0,
            containers: pod.spec().items("containers").len() + pod.sidecars().count(),
        };
        if !summary.add_init_containers(pod, status) || status.has_condition("Initialized") {
            summary.restarts = 0;
            summary.last_restart = None;
            for status in &status.init_container_statuses {
                if pod.sidecars().any(|sidecar| sidecar == status.name) {
                    summary.add_restarts(status);
                }
            }
            summary.add_containers(status);
        }
        let deleted = pod.is_deleting();
        if deleted && status.reason.as_deref() == Some("NodeLost") {
            summary.status = "Unknown".into();
        } else if deleted && !status.is_terminal() {
            summary.status = "Terminating".into();
        }
        summary
    }

    /// Adds the init containers; returns whether one of them is not completed or started.
    fn add_init_containers(&mut self, pod: &Value, status: &PodStatus) -> bool {
        for (at, status) in status.init_container_statuses.iter().enumerate() {
            self.add_restarts(status);
            let waiting = status.waiting_reason();
            if status.exit_code() == Some(0) {
                continue;
            }
            if status.started == Some(true) && pod.sidecars().any(|sidecar| sidecar == status.name) {
                self.ready += usize::from(status.ready);
                continue;
            }
            self.status = if let Some(terminated) = &status.state.terminated {
                format!("Init:{}", termination_reason(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{at}/{}", pod.spec().items("initContainers").len())
            };
            return true;
        }
        false
    }

    /// Adds the regular containers, in reverse order.
    fn add_containers(&mut self, pod: &PodStatus) {
        let mut is_running = false;
        let mut error = None;
        for status in pod.container_statuses.iter().rev() {
            self.add_restarts(status);
            let waiting = status.waiting_reason();
            if !waiting.is_empty() {
                self.status = waiting.to_owned();
            } else if let Some(terminated) = &status.state.terminated {
                self.status = termination_reason(terminated);
                if terminated.exit_code != 0 {
                    error = Some(self.status.clone());
                }
            } else if status.ready && status.is_running() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            match error {
                _ if is_running && pod.has_condition("Ready") => self.status = "Running".into(),
                Some(error) => self.status = error,
                None if is_running => self.status = "NotReady".into(),
                None => {}
            }
        }
    }

    fn add_restarts(&mut self, status: &ContainerStatus) {
        self.restarts += status.restart_count;
        let last = status.last_terminated().and_then(|last| last.finished_at.as_ref()).map(|time| time.0);
        self.last_restart = self.last_restart.max(last);
    }
}

/// Returns the reason of a container's termination.
fn termination_reason(terminated: &TerminatedState) -> String {
    match (terminated.reason.as_deref().unwrap_or_default(), terminated.signal.unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated.exit_code),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// READY, STATUS and RESTARTS of a pod.
    fn summary(pod: Value) -> String {
        let cells = cells(&pod, "2026-01-01T00:10:00Z".parse().unwrap());
        cells[1..4].iter().map(|cell| cell.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn container(name: &str, state: Value) -> Value {
        let (ready, runs) = (state["running"].is_object(), state["running"].is_object());
        json!({"name": name, "state": state, "ready": ready, "started": runs, "restartCount": 0})
    }

    fn running() -> Value {
        json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    }

    #[test]
    fn summarizes_init_containers_and_sidecars() {
        let spec = json!({
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            "containers": [{"name": "c"}],
        });
        let pod = |inits: Vec<Value>, main: Value, conditions: Value| {
            json!({"metadata": {}, "spec": spec, "status": {
                "phase": "Pending", "initContainerStatuses": inits, "containerStatuses": [container("c", main)], "conditions": conditions,
            }})
        };
        let waiting = json!({"waiting": {"reason": "PodInitializing"}});
        let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let failed = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        let init = |i: &Value, s: &Value, c: &Value| {
            summary(pod(vec![container("i", i.clone()), container("s", s.clone())], c.clone(), json!([])))
        };
        assert_eq!(init(&running(), &waiting, &waiting), "0/2 Init:0/2 0");
        assert_eq!(init(&done, &waiting, &waiting), "0/2 Init:1/2 0");
        assert_eq!(init(&failed, &waiting, &waiting), "0/2 Init:Error 0");
        assert_eq!(
            init(&json!({"waiting": {"reason": "CrashLoopBackOff"}}), &waiting, &waiting),
            "0/2 Init:CrashLoopBackOff 0"
        );
        assert_eq!(init(&done, &running(), &waiting), "1/2 PodInitializing 0");
        assert_eq!(init(&done, &running(), &running()), "2/2 Pending 0");
    }

    #[test]
    fn summarizes_terminated_containers() {
        let pod = |phase: &str, reason: Option<&str>, states: Vec<Value>, ready: &str| {
            let statuses: Vec<_> =
                states.into_iter().enumerate().map(|(at, state)| container(&at.to_string(), state)).collect();
            let containers: Vec<_> = statuses.iter().map(|status| json!({"name": status["name"]})).collect();
            json!({"metadata": {}, "spec": {"containers": containers}, "status": {
                "phase": phase, "reason": reason, "containerStatuses": statuses, "conditions": [{"type": "Ready", "status": ready}],
            }})
        };
        let done = || json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let lost = || json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}});
        assert_eq!(summary(pod("Failed", Some("Evicted"), vec![], "False")), "0/0 Evicted 0");
        assert_eq!(
            summary(pod("Failed", Some("Evicted"), vec![lost()], "False")),
            "0/1 ContainerStatusUnknown 0"
        );
        assert_eq!(summary(pod("Succeeded", None, vec![done()], "False")), "0/1 Completed 0");
        assert_eq!(summary(pod("Running", None, vec![done(), running()], "True")), "1/2 Running 0");
        assert_eq!(summary(pod("Running", None, vec![done(), running()], "False")), "1/2 NotReady 0");
        assert_eq!(
            summary(pod("Failed", None, vec![json!({"terminated": {"exitCode": 3}})], "False")),
            "0/1 ExitCode:3 0"
        );
        let mut killed = pod("Running", None, vec![running()], "True");
        killed["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(summary(killed.clone()), "1/1 Terminating 0");
        killed["status"]["phase"] = json!("Failed");
        assert_eq!(summary(killed), "1/1 Failed 0");
    }

    #[test]
    fn summarizes_restarts() {
        let mut status = container("c", running());
        status["restartCount"] = json!(2);
        status["lastState"] = json!({"terminated": {"finishedAt": "2026-01-01T00:05:00Z"}});
        let pod = json!({"metadata": {}, "spec": {"containers": [{}]}, "status": {"phase": "Running", "containerStatuses": [status]}});
        assert_eq!(summary(pod), "1/1 Running 2 (5m ago)");
    }
}
