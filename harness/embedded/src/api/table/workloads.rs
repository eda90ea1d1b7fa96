//! The tables of what makes pods (`printDeployment`, `printReplicaSet`, `printJob`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{age, human, moment};
use super::items;

/// The cells of a deployment.
pub fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = |field: &str| number(&object["status"][field]);
    let mut cells = vec![
        object["metadata"]["name"].clone(),
        json!(format!("{}/{}", status("readyReplicas"), number(&object["spec"]["replicas"]))),
        json!(status("updatedReplicas")),
        json!(status("availableReplicas")),
        json!(age(&object["metadata"]["creationTimestamp"], now)),
    ];
    cells.extend(wide(object));
    cells
}

/// The cells of a replica set.
pub fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        object["metadata"]["name"].clone(),
        json!(number(&object["spec"]["replicas"])),
        json!(number(&object["status"]["replicas"])),
        json!(number(&object["status"]["readyReplicas"])),
        json!(age(&object["metadata"]["creationTimestamp"], now)),
    ];
    cells.extend(wide(object));
    cells
}

/// The cells of a job.
pub fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = number(&object["status"]["succeeded"]);
    let completions = match (object["spec"]["completions"].as_i64(), number(&object["spec"]["parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel @ 2..) => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let duration = match (moment(&object["status"]["startTime"]), moment(&object["status"]["completionTime"]))
    {
        (None, _) => String::new(),
        (Some(start), end) => human(end.unwrap_or(now).duration_since(start).as_secs()),
    };
    let mut cells = vec![
        object["metadata"]["name"].clone(),
        json!(state(object)),
        json!(completions),
        json!(duration),
        json!(age(&object["metadata"]["creationTimestamp"], now)),
    ];
    cells.extend(wide(object));
    cells
}

/// What has become of a job.
fn state(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let mut conditions = items(job, "/status/conditions").iter();
        conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if !job["metadata"]["deletionTimestamp"].is_null() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

/// The cells that only `-o wide` shows: containers, images, selector.
fn wide(object: &Value) -> [Value; 3] {
    let containers = items(object, "/spec/template/spec/containers");
    let all = |field: &str| {
        containers.iter().filter_map(|container| container[field].as_str()).collect::<Vec<_>>().join(",")
    };
    [json!(all("name")), json!(all("image")), json!(selector(&object["spec"]["selector"]))]
}

/// A selector as `labels.Selector` prints it.
fn selector(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut all: Vec<(String, String)> =
        equal.map(|(key, value)| (key.clone(), format!("{key}={}", text(value)))).collect();
    for one in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = text(&one["key"]);
        let mut values: Vec<String> = one["values"].as_array().into_iter().flatten().map(text).collect();
        values.sort();
        let values = values.join(",");
        let told = match one["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        };
        all.push((key, told));
    }
    all.sort();
    match all.is_empty() {
        true => "<none>".to_owned(),
        false => all.into_iter().map(|(_, told)| told).collect::<Vec<_>>().join(","),
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_tells_how_far_it_is() {
        let now = "2026-01-01T00:02:00Z".parse().unwrap();
        let mut object = json!({
            "metadata": {"name": "j", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "parallelism": 3,
                "selector": {"matchLabels": {"z": "1"}, "matchExpressions": [
                    {"key": "b", "operator": "NotIn", "values": ["y", "x"]}, {"key": "a", "operator": "Exists"}
                ]},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "k"}]}},
            },
            "status": {"succeeded": 1, "startTime": "2026-01-01T00:00:10Z"},
        });
        let told = |object: &Value| {
            let cells = job(object, now);
            cells.iter().map(|cell| cell.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&object),
            ["j", "Running", "1/1 of 3", "110s", "2m", "c,d", "i,k", "a,b notin (x,y),z=1"]
        );
        object["spec"]["completions"] = json!(2);
        object["status"]["completionTime"] = json!("2026-01-01T00:00:15Z");
        object["status"]["conditions"] =
            json!([{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]);
        assert_eq!(told(&object)[1..4], ["Failed", "1/2", "5s"]);
    }
}
