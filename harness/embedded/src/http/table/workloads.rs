//! Tables of workloads (`printDeployment`, `printReplicaSet`, `printJob`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{age, human_duration, timestamp};
use crate::resource::ObjectExt;

/// Returns the cells of a deployment.
pub(crate) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        object["metadata"]["name"].clone(),
        json!(format!(
            "{}/{}",
            object["status"].integer("readyReplicas"),
            object["spec"].integer("replicas")
        )),
        json!(object["status"].integer("updatedReplicas")),
        json!(object["status"].integer("availableReplicas")),
        json!(age(&object["metadata"]["creationTimestamp"], now)),
    ];
    cells.extend(wide_cells(object));
    cells
}

/// Returns the cells of a replica set.
pub(crate) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        object["metadata"]["name"].clone(),
        json!(object["spec"].integer("replicas")),
        json!(object["status"].integer("replicas")),
        json!(object["status"].integer("readyReplicas")),
        json!(age(&object["metadata"]["creationTimestamp"], now)),
    ];
    cells.extend(wide_cells(object));
    cells
}

/// Returns the cells of a job.
pub(crate) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = object["status"].integer("succeeded");
    let completions = match (object["spec"]["completions"].as_i64(), object["spec"].integer("parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel @ 2..) => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let duration =
        match (timestamp(&object["status"]["startTime"]), timestamp(&object["status"]["completionTime"])) {
            (None, _) => String::new(),
            (Some(start), end) => human_duration(end.unwrap_or(now).duration_since(start).as_secs()),
        };
    let mut cells = vec![
        object["metadata"]["name"].clone(),
        json!(job_status(object)),
        json!(completions),
        json!(duration),
        json!(age(&object["metadata"]["creationTimestamp"], now)),
    ];
    cells.extend(wide_cells(object));
    cells
}

/// Returns the status of a job.
fn job_status(job: &Value) -> &'static str {
    match () {
        () if job.has_condition("Complete") => "Complete",
        () if job.has_condition("Failed") => "Failed",
        () if job.is_deleting() => "Terminating",
        () if job.has_condition("Suspended") => "Suspended",
        () if job.has_condition("FailureTarget") => "FailureTarget",
        () if job.has_condition("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

/// Returns the cells of `-o wide`: containers, images, selector.
fn wide_cells(object: &Value) -> [Value; 3] {
    let containers = object["spec"]["template"]["spec"].items("containers");
    let all = |field: &str| {
        containers.clone().filter_map(|container| container[field].as_str()).collect::<Vec<_>>().join(",")
    };
    [json!(all("name")), json!(all("image")), json!(format_selector(&object["spec"]["selector"]))]
}

/// Formats a label selector as `labels.Selector`.
fn format_selector(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut all: Vec<(String, String)> =
        equal.map(|(key, value)| (key.clone(), format!("{key}={}", text(value)))).collect();
    for one in selector.items("matchExpressions") {
        let key = text(&one["key"]);
        let mut values: Vec<String> = one.items("values").map(text).collect();
        values.sort();
        let values = values.join(",");
        let requirement = match one.text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        };
        all.push((key, requirement));
    }
    all.sort();
    match all.is_empty() {
        true => "<none>".to_owned(),
        false => all.into_iter().map(|(_, requirement)| requirement).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_progress_and_status_of_jobs() {
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
        let cells = |object: &Value| {
            job(object, now).iter().map(|cell| cell.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            cells(&object),
            ["j", "Running", "1/1 of 3", "110s", "2m", "c,d", "i,k", "a,b notin (x,y),z=1"]
        );
        object["spec"]["completions"] = json!(2);
        object["status"]["completionTime"] = json!("2026-01-01T00:00:15Z");
        object["status"]["conditions"] =
            json!([{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]);
        assert_eq!(cells(&object)[1..4], ["Failed", "1/2", "5s"]);
    }
}
