//! The histories of a pod and a node: one JSON entry for each change of state.

use serde_json::{Map, Value, json};

use super::views::{PodView, container_statuses};

/// Returns the entry of a pod at `t` seconds after the first pod was created: `{t, phase, reason,
/// deleting, gone, conditions: {type: {status, reason}}, containers: {name: {state, reason,
/// exitCode, restarts, ready}}}`.
pub(crate) fn pod_entry(t: f64, pod: &Value, gone: bool) -> Value {
    let status = &pod["status"];
    let containers: Map<String, Value> = container_statuses(status)
        .filter_map(|container| {
            let name = container["name"].as_str()?.to_owned();
            let (state, detail) = container["state"].as_object().and_then(|state| state.iter().next())?;
            let entry = json!({
                "state": state,
                "reason": detail["reason"],
                "exitCode": detail["exitCode"],
                "restarts": container["restartCount"],
                "ready": container["ready"],
            });
            Some((name, entry))
        })
        .collect();
    json!({
        "t": t,
        "phase": status["phase"],
        "reason": status["reason"],
        "deleting": PodView::new(pod).is_deleting(),
        "gone": gone,
        "conditions": conditions(pod),
        "containers": containers,
    })
}

/// Returns the entry of a node: `{t, conditions: {type: {status, reason}}, taints: ["key:effect"],
/// unschedulable}`, with the taints sorted.
pub(crate) fn node_entry(t: f64, node: &Value) -> Value {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut taints: Vec<String> =
        taints.map(|taint| format!("{}:{}", text(&taint["key"]), text(&taint["effect"]))).collect();
    taints.sort();
    json!({
        "t": t,
        "conditions": conditions(node),
        "taints": taints,
        "unschedulable": node["spec"]["unschedulable"] == true,
    })
}

fn conditions(object: &Value) -> Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let entry = |condition: &Value| {
        let name = condition["type"].as_str()?.to_owned();
        Some((name, json!({"status": condition["status"], "reason": condition["reason"]})))
    };
    Value::Object(conditions.filter_map(entry).collect())
}

/// Appends an entry, unless only its time differs from the last one.
pub(crate) fn push_change(history: &mut Vec<Value>, entry: Value) {
    let is_same = |last: &Value| match (last.as_object(), entry.as_object()) {
        (Some(last), Some(entry)) => without_time(last).eq(without_time(entry)),
        _ => false,
    };
    if !history.last().is_some_and(is_same) {
        history.push(entry);
    }
}

fn without_time(entry: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    entry.iter().filter(|(field, _)| *field != "t")
}

/// Returns the time in seconds of the first entry in which a container has left the state
/// `waiting`.
pub(crate) fn first_container_start(pod_history: &[Value]) -> Option<f64> {
    let is_started = |container: &Value| container["state"] != "waiting";
    let entry = pod_history.iter().find(|entry| {
        entry["containers"].as_object().is_some_and(|containers| containers.values().any(is_started))
    });
    entry?["t"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_states_are_recorded_once() {
        let pod = |phase: &str| {
            json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "a", "restartCount": 0, "state": {"running": {}}}]}})
        };
        let mut history = vec![];
        for (t, phase) in [(0.0, "Pending"), (1.0, "Running"), (2.0, "Running"), (3.0, "Failed")] {
            push_change(&mut history, pod_entry(t, &pod(phase), false));
        }
        let recorded: Vec<_> =
            history.iter().map(|entry| (entry["t"].as_f64(), entry["phase"].as_str())).collect();
        assert_eq!(
            recorded,
            [(Some(0.0), Some("Pending")), (Some(1.0), Some("Running")), (Some(3.0), Some("Failed"))]
        );
        assert_eq!(history[0]["containers"]["a"]["state"], "running");
        assert_eq!(history[0]["conditions"]["Ready"]["status"], "True");
    }
}
