use std::time::Duration;

use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

use super::*;
use crate::options::{NodeOptions, Options};
use crate::world::World;

fn world(minor: u32) -> World {
    let node = NodeOptions::new("n1", KubeletVersion::minor(minor));
    let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut world = World::new(Options::new(7, epoch, vec![node])).unwrap();
    for name in ["default", "here"] {
        let object = json!({"metadata": {"name": name}, "status": {"phase": "Active"}});
        let _exists = world.store.create(Kind::Namespace, object, Time::ZERO);
    }
    world
}

fn pod() -> Value {
    json!({"metadata": {"name": "p", "namespace": "here", "uid": "u", "resourceVersion": "5"}})
}

fn tell(world: &mut World, reason: &str, message: &str) {
    tell_about(world, &pod(), reason, message);
}

fn tell_about(world: &mut World, pod: &Value, reason: &str, message: &str) {
    world.with(|_, nodes, ctx| {
        let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
        kubelet.tell(About::Pod(pod, None), "Warning", reason, message, Some(json!({"a": "b"})), ctx);
    });
}

fn events(world: &mut World) -> Vec<Value> {
    let now = world.now + Duration::from_millis(400);
    world.run(now);
    world.store.list(Kind::Event, Some("here")).map(|event| Value::clone(event)).collect()
}

#[test]
fn an_event_is_as_recorded() {
    let mut world = world(31);
    tell(&mut world, "Evicted", "why");
    let events = events(&mut world);
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
fn equal_events_are_counted_in_one() {
    let mut world = world(31);
    for _ in 0..3 {
        tell(&mut world, "BackOff", "again");
    }
    let events = events(&mut world);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["count"], 3);
}

#[test]
fn the_tenth_message_of_a_reason_is_combined_with_those_after_it() {
    let mut world = world(31);
    for number in 0..12 {
        tell(&mut world, "Failed", &format!("number {number}"));
    }
    let events = events(&mut world);
    assert_eq!(events.len(), 10);
    let combined = events.iter().find(|event| event["count"] == 3).unwrap();
    assert_eq!(combined["message"], "(combined from similar events): number 11");
    assert!(combined["metadata"].get("annotations").is_none());
}

#[test]
fn after_25_events_about_an_object_one_in_five_minutes_is_sent() {
    let mut world = world(31);
    for number in 0..30 {
        tell(&mut world, &format!("Reason{number}"), "m");
    }
    assert_eq!(events(&mut world).len(), 25);
    world.run(world.now + Duration::from_secs(301));
    tell(&mut world, "Later", "m");
    tell(&mut world, "TooSoon", "m");
    assert_eq!(events(&mut world).len(), 26);
}

#[test]
fn a_name_that_is_too_long_loses_the_event_until_1_32_and_becomes_a_uuid_then() {
    for (minor, sent) in [(32, 0), (33, 1)] {
        let mut world = world(minor);
        let mut pod = pod();
        pod["metadata"]["name"] = json!("p".repeat(250));
        tell_about(&mut world, &pod, "Evicted", "why");
        assert_eq!(events(&mut world).len(), sent, "1.{minor}");
    }
}

#[test]
fn a_namespace_that_ends_takes_no_events() {
    let mut world = world(31);
    world
        .store
        .update(Kind::Namespace, "", "here", |namespace| namespace["status"]["phase"] = json!("Terminating"));
    tell(&mut world, "Evicted", "why");
    assert_eq!(events(&mut world), Vec::<Value>::new());
}

#[test]
fn the_node_is_named_as_the_version_names_it() {
    for (minor, involved) in [
        (34, json!({"kind": "Node", "name": "n1", "uid": "n1"})),
        (35, json!({"apiVersion": "v1", "kind": "Node", "name": "n1"})),
    ] {
        let mut world = world(minor);
        world.with(|_, nodes, ctx| {
            let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
            kubelet.tell(About::Node, "Normal", "NodeHasDiskPressure", "m", None, ctx);
        });
        world.run(world.now + Duration::from_millis(400));
        let all: Vec<_> = world.store.list(Kind::Event, Some("default")).collect();
        let event = all.iter().find(|event| event["reason"] == "NodeHasDiskPressure").unwrap();
        assert_eq!(event["involvedObject"], involved);
    }
}

#[test]
fn faults_lose_double_and_delay_events() {
    for (fault, at_once, later) in [
        (json!({"event-lost": {"reason": "Evicted", "times": 1}}), 1, 1),
        (json!({"event-doubled": {"reason": "Evicted", "times": 1}}), 3, 3),
        (json!({"event-late": {"reason": "Evicted", "by": "5s"}}), 0, 2),
    ] {
        let mut world = world(31);
        let script: Vec<crate::fault::Fault> = vec![serde_json::from_value(fault.clone()).unwrap()];
        world.with(|_, _, ctx| {
            let scope = crate::fault::Scope { namespace: Some("here".to_owned()), node: None };
            ctx.faults.arm(&script, &scope, ctx.now, ctx.agenda);
        });
        for message in ["one", "two"] {
            tell(&mut world, "Evicted", message);
        }
        assert_eq!(events(&mut world).len(), at_once, "{fault}");
        world.run(world.now + Duration::from_secs(6));
        assert_eq!(events(&mut world).len(), later, "{fault}");
    }
}
