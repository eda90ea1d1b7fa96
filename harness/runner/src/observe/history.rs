//! What a pod and a node went through: one entry for each change that means something.

use serde_json::{Map, Value, json};

use super::statuses::statuses;

/// A pod as it is `t` seconds after the first pod's creation: `{t, phase, reason, deleting, gone, conditions: {type: {status, reason}}, containers:
/// {name: {state, reason, exitCode, restarts, ready}}}`.
pub fn of_pod(t: f64, pod: &Value, gone: bool) -> Value {
    let status = &pod["status"];
    let containers: Map<String, Value> = statuses(status)
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
        "deleting": !pod["metadata"]["deletionTimestamp"].is_null(),
        "gone": gone,
        "conditions": conditions(pod),
        "containers": containers,
    })
}

/// What a case calls a pod: its name, and for a static pod the name in its file, which the kubelet ends with the node's.
pub fn name_of(pod: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&pod["metadata"]["name"]);
    if pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return name;
    }
    let end = format!("-{}", text(&pod["spec"]["nodeName"]));
    name.strip_suffix(&end).unwrap_or(&name).to_owned()
}

/// A node in the same way: `{t, conditions: {type: {status, reason}}, taints: ["key:effect"], unschedulable}`.
pub fn of_node(t: f64, node: &Value) -> Value {
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

/// Adds an entry, unless nothing but the time changed.
pub fn add(history: &mut Vec<Value>, entry: Value) {
    let same = |last: &Value| match (last.as_object(), entry.as_object()) {
        (Some(last), Some(entry)) => without_time(last).eq(without_time(entry)),
        _ => false,
    };
    if !history.last().is_some_and(same) {
        history.push(entry);
    }
}

fn without_time(entry: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    entry.iter().filter(|(field, _)| *field != "t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_kept() {
        let pod = |phase: &str| {
            json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "a", "restartCount": 0, "state": {"running": {}}}]}})
        };
        let mut history = vec![];
        for (t, phase) in [(0.0, "Pending"), (1.0, "Running"), (2.0, "Running"), (3.0, "Failed")] {
            add(&mut history, of_pod(t, &pod(phase), false));
        }
        let told: Vec<_> =
            history.iter().map(|entry| (entry["t"].as_f64(), entry["phase"].as_str())).collect();
        assert_eq!(
            told,
            [(Some(0.0), Some("Pending")), (Some(1.0), Some("Running")), (Some(3.0), Some("Failed"))]
        );
        assert_eq!(history[0]["containers"]["a"]["state"], "running");
        assert_eq!(history[0]["conditions"]["Ready"]["status"], "True");
    }
}
