//! Evictions of recorded pods: statuses and events must equal the recorded ones.

use jiff::Timestamp;

use super::*;
use crate::resource::ObjectExt;
use crate::tests::{RULES, read_recordings};

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.items(field)
}

const LISTS: [&str; 3] = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

/// Returns the fields of a container status that must be equal. The others depend on the exit of
/// the container, which a relist may miss by milliseconds.
fn container(status: &Value) -> Value {
    let mut actual = json!({});
    for field in ["name", "ready", "started", "image", "volumeMounts"] {
        actual[field] = status[field].clone();
    }
    actual
}

/// Returns the exit of a container, if it was observed.
fn end(status: &Value) -> Value {
    let way = |state: &Value| {
        json!([state["terminated"]["reason"], state["terminated"]["exitCode"], state["waiting"]["reason"]])
    };
    json!([way(&status["state"]), way(&status["lastState"]), status["restartCount"]])
}

fn conditions(status: &Value) -> Vec<Value> {
    let actual = list(status, "conditions").map(|condition| {
        let fields = ["type", "status", "reason", "message", "observedGeneration"];
        json!(fields.map(|field| condition[field].clone()))
    });
    actual.collect()
}

fn fields(value: &Value) -> Vec<&str> {
    // The value that 1.36 derives from the kernel's pod figures is not modelled.
    let mut fields: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|field| !["resources", "allocatedResources"].contains(field))
        .collect();
    fields.sort_unstable();
    fields
}

#[test]
fn pods_end_as_recorded() {
    let (mut compared, mut equal_exits, mut seen) = (0, 0, 0);
    for (name, recording) in read_recordings::<Value>(&[RULES]) {
        let version: KubeletVersion = recording["kubeletVersion"].as_str().unwrap().parse().unwrap();
        for (created, last) in list(&recording, "podsCreated").zip(list(&recording, "podsFinal")) {
            let pod = created["metadata"]["name"].as_str().unwrap();
            let events: Vec<&Value> =
                list(&recording, "events").filter(|event| event["involvedObject"]["name"] == *pod).collect();
            let Some(evicted) = events.iter().find(|event| event["reason"] == "Evicted") else { continue };
            compared += 1;
            let mut lab = Lab::new(version.minor);
            let status = &last["status"];
            let uid = lab.pod(pod, created["spec"].clone());
            let since = |value: &Value| {
                let began = time(&created["metadata"]["creationTimestamp"]);
                u64::try_from(time(value).duration_since(began).as_secs()).unwrap()
            };
            let end = since(&evicted["firstTimestamp"]).max(9);
            for second in 0..end {
                if second == 5 && !last["spec"]["ephemeralContainers"].is_null() {
                    lab.simulation.with_context(|ctx| {
                        ctx.store.update(Kind::Pod, "default", pod, |pod| {
                            pod["spec"]["ephemeralContainers"] = last["spec"]["ephemeralContainers"].clone();
                            pod["metadata"]["generation"] = json!(2);
                        })
                    });
                }
                lab.seconds(1);
            }
            let message = evicted["message"].as_str().unwrap();
            let disruption = conditions(status).iter().any(|condition| condition[0] == "DisruptionTarget");
            let grace = if recording["scenario"] == "soft" { 3 } else { 1 };
            let why = PodEviction { message: message.to_owned(), disruption, grace: Some(grace) };
            lab.simulation.with(|_, nodes, ctx| {
                let node = nodes.get_mut("n1").unwrap();
                node.kubelet.evict(&uid, why, &mut node.machine, ctx);
            });
            lab.seconds(10);

            let actual = lab.status(pod);
            let place = format!("{name} {pod}");
            let mut all_equal = true;
            for statuses in LISTS {
                for (own, recorded) in list(&actual, statuses).zip(list(status, statuses)) {
                    seen += 1;
                    let same = self::end(own) == self::end(recorded);
                    equal_exits += usize::from(same);
                    all_equal &= same;
                    if same {
                        assert_eq!(fields(own), fields(recorded), "{place}");
                    } else {
                        println!(
                            "{place}: {}: {} recorded {}",
                            own["name"],
                            self::end(own),
                            self::end(recorded)
                        );
                    }
                    assert_eq!(container(own), container(recorded), "{place}");
                }
                assert_eq!(list(&actual, statuses).count(), list(status, statuses).count(), "{place}");
            }
            for field in ["qosClass", "observedGeneration"] {
                assert_eq!(actual[field], status[field], "{place}: {field}");
            }
            // The exit codes decide between `Succeeded` and `Failed`.
            if all_equal {
                for field in ["phase", "reason", "message"] {
                    assert_eq!(actual[field], status[field], "{place}: {field}");
                }
                assert_eq!(fields(&actual), fields(status), "{place}");
                assert_eq!(conditions(&actual), conditions(status), "{place}");
            }
            assert_eq!(lab.sequence(pod), sequence(&events), "{place}");
        }
    }
    println!("{compared} pods, {equal_exits} of {seen} containers all_equal");
    // A relist may miss the time between the last container's exit and the pod's end by
    // milliseconds.
    assert!(equal_exits * 10 >= seen * 9, "{equal_exits} of {seen} containers ended as recorded");
}

/// Returns reasons and containers of events in order. Evictions are left out, and so is the order
/// of kills at the same time.
fn sequence(events: &[&Value]) -> (Vec<String>, Vec<String>) {
    let mut events: Vec<&&Value> = events.iter().filter(|event| event["reason"] != "Evicted").collect();
    events.sort_by_key(|event| event["metadata"]["name"].as_str().unwrap().to_owned());
    let (killed, begun): (Vec<&&Value>, Vec<_>) =
        events.iter().copied().partition(|event| event["reason"] == "Killing");
    let text = |event: &&&Value| {
        json!([event["reason"], event["involvedObject"]["fieldPath"], event["message"], event["type"]])
            .to_string()
    };
    let mut killed: Vec<String> = killed.iter().map(text).collect();
    killed.sort_unstable();
    (begun.iter().map(text).collect(), killed)
}

impl Lab {
    fn sequence(&self, pod: &str) -> (Vec<String>, Vec<String>) {
        let events = self.all_events(pod);
        sequence(&events.iter().collect::<Vec<_>>())
    }
}
