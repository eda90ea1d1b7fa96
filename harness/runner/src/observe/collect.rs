//! What is gathered when watching is over: the last state of everything, and what only the node knows.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::watch::plain;
use super::{Observations, Watched};
use crate::cluster::Node;

/// What was noted before the pods were created.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// When.
    pub at: Timestamp,
    /// The Summary.
    pub summary: Value,
    /// `kubelet_evictions` by signal.
    pub evictions: Map<String, Value>,
}

/// Completes the observations: the pods and events as the API has them now, the node's conditions and taints, the eviction counters and the
/// kubelet's log. What cannot be had is left out, and named in the answer: evidence that was watched is never lost to it.
///
/// With `whole_log` every line of the kubelet's log is kept, else those about evictions.
pub async fn collect(
    node: &Node,
    namespace: &str,
    before: &Before,
    watched: &Watched,
    whole_log: bool,
    observations: &mut Observations,
) -> Vec<String> {
    let mut missing = Vec::new();
    observations.pods_gone = watched.gone.clone();
    observations.pod_history =
        watched.history.iter().map(|(name, history)| (name.clone(), history.clone().into())).collect();
    observations.node_history = watched.node_history.clone();
    observations.node_object = watched.node.clone();
    observations.events = watched.events.clone();
    observations.pods_final = watched.pods.values().cloned().collect();
    let pods: Api<Pod> = Api::namespaced(node.client().clone(), namespace);
    let everything = ListParams::default();
    match pods.list(&everything).await {
        Ok(listed) => {
            let value = |pod: Pod| serde_json::to_value(pod).ok().map(|pod| typed(plain(pod), "Pod"));
            observations.pods_final = listed.items.into_iter().filter_map(value).collect();
        }
        Err(error) => missing.push(format!("the pods' last state: {error}")),
    }
    // A watch that broke may have lost events; a node's own events are in the namespace `default`.
    for (place, filter) in [(namespace, ListParams::default()), ("default", of_node(&node.name))] {
        match events(node.client(), place, &filter, before.at).await {
            Ok(listed) => listed.into_iter().for_each(|event| add(&mut observations.events, event)),
            Err(error) => missing.push(format!("the events of {place}: {error}")),
        }
    }
    match node.object().await {
        Ok(object) => {
            let object = serde_json::to_value(object).unwrap_or_default();
            observations.node_status =
                json!({"conditions": object["status"]["conditions"], "taints": object["spec"]["taints"]});
        }
        Err(error) => missing.push(error.to_string()),
    }
    match node.evictions().await {
        Ok(now) => observations.evictions_counted = grown(&before.evictions, &now),
        Err(error) => missing.push(error.to_string()),
    }
    match node.kubelet_log(before.at).await {
        Ok(Some(lines)) => {
            observations.kubelet_log =
                lines.into_iter().filter(|line| whole_log || about_eviction(line)).collect()
        }
        Ok(None) => {}
        Err(error) => missing.push(error.to_string()),
    }
    missing
}

fn of_node(node: &str) -> ListParams {
    ListParams::default().fields(&format!("involvedObject.kind=Node,involvedObject.name={node}"))
}

/// Typed lists leave `apiVersion` and `kind` out of their items.
fn typed(mut object: Value, kind: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!(kind));
    }
    object
}

/// Events of a namespace since a moment, as the API has them. A node has many from before, which are not taken apart.
async fn events(
    client: &Client,
    namespace: &str,
    filter: &ListParams,
    since: Timestamp,
) -> Result<Vec<Value>, kube::Error> {
    #[derive(Deserialize)]
    struct Listed {
        items: Option<Vec<Box<RawValue>>>,
    }
    let request = Request::new(Event::url_path(&(), Some(namespace))).list(filter);
    let listed: Listed = client.request(request.map_err(kube::Error::BuildRequest)?).await?;
    let items = listed.items.unwrap_or_default();
    let recent = items.iter().filter(|event| is_since(event, since));
    recent.map(|event| serde_json::from_str(event.get()).map_err(kube::Error::SerdeError)).collect()
}

fn is_since(event: &RawValue, at: Timestamp) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Times {
        last_timestamp: Option<Timestamp>,
        event_time: Option<Timestamp>,
    }
    // One that cannot be read is kept: evidence is not lost to it.
    let times: Times = serde_json::from_str(event.get()).unwrap_or_default();
    // Event times have whole seconds.
    times.last_timestamp.or(times.event_time).is_none_or(|time| time.as_second() >= at.as_second())
}

fn add(events: &mut Vec<Value>, event: Value) {
    let event = typed(plain(event), "Event");
    if !events.iter().any(|known| known["metadata"]["uid"] == event["metadata"]["uid"]) {
        events.push(event);
    }
}

/// By how much each counter grew.
fn grown(before: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let count = |map: &Map<String, Value>, signal: &str| map.get(signal).and_then(Value::as_u64).unwrap_or(0);
    now.keys()
        .filter_map(|signal| {
            let by = count(now, signal).saturating_sub(count(before, signal));
            (by > 0).then(|| (signal.clone(), by.into()))
        })
        .collect()
}

fn about_eviction(line: &str) -> bool {
    line.contains("viction") || line.contains("vict pod") || line.contains("OOM")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_before_are_left_out() {
        let at = "2026-11-21T09:30:12.7Z".parse().unwrap();
        let rows = [
            (r#"{"lastTimestamp": "2026-11-21T09:30:12Z"}"#, true),
            (r#"{"lastTimestamp": "2026-11-21T09:30:11Z", "eventTime": null}"#, false),
            (r#"{"lastTimestamp": null, "eventTime": "2026-11-21T09:30:11.999999Z"}"#, false),
            (r#"{"lastTimestamp": null, "eventTime": "2026-11-21T09:30:13.000001Z"}"#, true),
            (r#"{"metadata": {}}"#, true),
            (r#"{"lastTimestamp": "yesterday"}"#, true),
        ];
        for (event, kept) in rows {
            let event: Box<RawValue> = serde_json::from_str(event).unwrap();
            assert_eq!(is_since(&event, at), kept, "{event}");
        }
    }

    #[test]
    fn counters_that_grew_are_told() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let before = map(json!({"memory.available": 1, "pid.available": 1}));
        let now = map(json!({"memory.available": 3, "pid.available": 1, "emptydirfs.limit": 1}));
        assert_eq!(grown(&before, &now), map(json!({"memory.available": 2, "emptydirfs.limit": 1})));
    }
}
