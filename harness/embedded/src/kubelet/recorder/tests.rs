use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

use super::*;
use crate::options::{ClusterOptions, NodeOptions};
use crate::resource::{EventBody, Kind};
use crate::sim::SimTime;
use crate::simulation::Simulation;

fn simulation(minor: u32) -> Simulation {
    let node = NodeOptions::new("n1", KubeletVersion::from_minor(minor));
    let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut simulation = Simulation::new(ClusterOptions::new(7, epoch, vec![node])).unwrap();
    for name in ["default", "here"] {
        let object = json!({"metadata": {"name": name}, "status": {"phase": "ActivePod"}});
        let _exists = simulation.store.create(Kind::Namespace, object, SimTime::ZERO);
    }
    simulation
}

fn pod() -> Value {
    json!({"metadata": {"name": "p", "namespace": "here", "uid": "u", "resourceVersion": "5"}})
}

fn record(simulation: &mut Simulation, reason: &str, message: &str) {
    record_about(simulation, &pod(), reason, message);
}

fn record_about(simulation: &mut Simulation, pod: &Value, reason: &str, message: &str) {
    simulation.with(|_, nodes, ctx| {
        let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
        let event = EventBody::warning(reason, message)
            .annotated(Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])));
        kubelet.record_event(EventObject::Pod(pod, None), event, ctx);
    });
}

fn events(simulation: &mut Simulation) -> Vec<Value> {
    let now = simulation.now + Duration::from_millis(400);
    simulation.run(now);
    simulation.store.list(Kind::Event, Some("here")).map(|event| Value::clone(event)).collect()
}

#[test]
fn event_equals_recorded_one() {
    let mut simulation = simulation(31);
    record(&mut simulation, "Evicted", "why");
    let events = events(&mut simulation);
    let event = &events[0];
    assert!(event["metadata"]["name"].as_str().unwrap().starts_with("p.1886"), "{event}");
    assert_eq!(event["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(
        event["involvedObject"],
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "here", "resourceVersion": "5", "uid": "u"})
    );
    assert_eq!(event["source"], json!({"component": "kubelet", "host": "n1"}));
    assert_eq!(
        (&event["reportingComponent"], &event["reportingInstance"]),
        (&json!("kubelet"), &json!("n1"))
    );
    assert_eq!((&event["count"], &event["type"]), (&json!(1), &json!("Warning")));
    assert_eq!(event["eventTime"], Value::Null);
}

#[test]
fn counts_equal_events() {
    let mut simulation = simulation(31);
    for _ in 0..3 {
        record(&mut simulation, "BackOff", "again");
    }
    let events = events(&mut simulation);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["count"], 3);
}

#[test]
fn combines_messages_from_the_tenth() {
    let mut simulation = simulation(31);
    for number in 0..12 {
        record(&mut simulation, "Failed", &format!("number {number}"));
    }
    let events = events(&mut simulation);
    assert_eq!(events.len(), 10);
    let combined = events.iter().find(|event| event["count"] == 3).unwrap();
    assert_eq!(combined["message"], "(combined from similar events): number 11");
    assert!(combined["metadata"].get("annotations").is_none());
}

#[test]
fn spam_filter_allows_25_events() {
    let mut simulation = simulation(31);
    for number in 0..30 {
        record(&mut simulation, &format!("Reason{number}"), "m");
    }
    assert_eq!(events(&mut simulation).len(), 25);
    simulation.run(simulation.now + Duration::from_secs(301));
    record(&mut simulation, "Later", "m");
    record(&mut simulation, "TooSoon", "m");
    assert_eq!(events(&mut simulation).len(), 26);
}

#[test]
fn overlong_event_name_is_lost_until_1_32() {
    for (minor, sent) in [(32, 0), (33, 1)] {
        let mut simulation = simulation(minor);
        let mut pod = pod();
        pod["metadata"]["name"] = json!("p".repeat(250));
        record_about(&mut simulation, &pod, "Evicted", "why");
        assert_eq!(events(&mut simulation).len(), sent, "1.{minor}");
    }
}

#[test]
fn drops_events_in_terminating_namespace() {
    let mut simulation = simulation(31);
    simulation
        .store
        .update(Kind::Namespace, "", "here", |namespace| namespace["status"]["phase"] = json!("Terminating"));
    record(&mut simulation, "Evicted", "why");
    assert_eq!(events(&mut simulation), Vec::<Value>::new());
}

#[test]
fn node_reference_by_version() {
    for (minor, involved) in [
        (34, json!({"kind": "Node", "name": "n1", "uid": "n1"})),
        (35, json!({"apiVersion": "v1", "kind": "Node", "name": "n1"})),
    ] {
        let mut simulation = simulation(minor);
        simulation.with(|_, nodes, ctx| {
            let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
            kubelet.record_event(EventObject::Node, EventBody::normal("NodeHasDiskPressure", "m"), ctx);
        });
        simulation.run(simulation.now + Duration::from_millis(400));
        let all: Vec<_> = simulation.store.list(Kind::Event, Some("default")).collect();
        let event = all.iter().find(|event| event["reason"] == "NodeHasDiskPressure").unwrap();
        assert_eq!(event["involvedObject"], involved);
    }
}

#[test]
fn faults_drop_duplicate_and_delay_events() {
    for (fault, at_once, later) in [
        (json!({"event-lost": {"reason": "Evicted", "times": 1}}), 1, 1),
        (json!({"event-doubled": {"reason": "Evicted", "times": 1}}), 3, 3),
        (json!({"event-late": {"reason": "Evicted", "by": "5s"}}), 0, 2),
    ] {
        let mut simulation = simulation(31);
        let script: Vec<evictlab_fault::Fault> = vec![serde_json::from_value(fault.clone()).unwrap()];
        let scope = crate::fault::FaultScope { namespace: Some("here".to_owned()), node: None };
        simulation.inject_faults(&script, &scope);
        for message in ["one", "two"] {
            record(&mut simulation, "Evicted", message);
        }
        assert_eq!(events(&mut simulation).len(), at_once, "{fault}");
        simulation.run(simulation.now + Duration::from_secs(6));
        assert_eq!(events(&mut simulation).len(), later, "{fault}");
    }
}
