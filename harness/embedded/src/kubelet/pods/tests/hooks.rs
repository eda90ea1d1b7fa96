//! `preStop` hooks.

use super::*;

const UNTIL_TERM: [&str; 3] = ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"];

fn with_hook(script: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 15,
        "containers": [{
            "name": "c",
            "command": UNTIL_TERM,
            "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", script]}}},
        }],
    })
}

/// Returns the seconds until the containers of an evicted pod have ended.
fn time_to_end(lab: &mut Lab, uid: &str) -> f64 {
    let evicted = lab.simulation.now;
    lab.evict(uid, "why", None);
    while !lab.kubelet().pods.running(uid).is_empty() {
        lab.millis(100);
    }
    lab.simulation.now.since(evicted).as_secs_f64()
}

#[test]
fn a_pre_stop_command_delays_the_end_of_its_container() {
    for (script, expected) in [
        ("sleep 8", 8.0..9.0),
        ("true", 0.0..1.0),
        // The grace period ends the wait; at least 2 s are left for the container.
        ("sleep 40", 15.0..16.0),
    ] {
        let mut lab = Lab::new(36);
        let uid = lab.pod("p", with_hook(script));
        lab.seconds(4);
        let took = time_to_end(&mut lab, &uid);
        assert!(expected.contains(&took), "{script}: {took}");
        lab.seconds(3);
        let has_failed = script == "sleep 40";
        assert_eq!(lab.events("p").contains(&"FailedPreStopHook c".to_owned()), has_failed, "{script}");
    }
}

#[test]
fn the_time_of_a_pre_stop_command_is_part_of_the_grace_period() {
    let mut spec = with_hook("sleep 8; exit 3");
    spec["containers"][0]["command"] = json!(["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]);
    let mut lab = Lab::new(36);
    let uid = lab.pod("p", spec);
    lab.seconds(4);
    let took = time_to_end(&mut lab, &uid);
    assert!((15.0..15.9).contains(&took), "{took}");
    assert_eq!(lab.messages("p", "FailedPreStopHook"), ["PreStopHook failed"]);
}

#[test]
fn a_pre_stop_command_ends_with_its_container() {
    let mut lab = Lab::new(36);
    let mut spec = with_hook("sleep 8");
    spec["containers"][0]["command"] = json!(["sleep", "6"]);
    let uid = lab.pod("p", spec);
    lab.seconds(4);
    let took = time_to_end(&mut lab, &uid);
    assert!(took < 5.0, "{took}");
    lab.seconds(2);
    assert_eq!(lab.status("p")["phase"], "Succeeded", "its exit code is 0");
}

/// `killContainer` waits for a hook that sleeps, and with it the end of the pod.
#[test]
fn a_pre_stop_sleep_outlasts_its_container() {
    let mut lab = Lab::new(36);
    let hook = json!({"preStop": {"sleep": {"seconds": 8}}});
    let container = json!({"name": "c", "command": ["sleep", "6"], "lifecycle": hook});
    let uid = lab.pod("p", json!({"terminationGracePeriodSeconds": 15, "containers": [container]}));
    lab.seconds(4);
    let took = time_to_end(&mut lab, &uid);
    assert!(took < 5.0, "{took}");
    let evicted = lab.simulation.now;
    while lab.status("p")["phase"] == "Running" {
        lab.millis(100);
    }
    let took = took + lab.simulation.now.since(evicted).as_secs_f64();
    assert!((8.0..8.6).contains(&took), "{took}");
}

/// `runSleepHandler` ends at once without the gate, which is off in 1.29; older kubelets do not
/// know the handler.
#[test]
fn old_kubelets_do_not_sleep() {
    for (minor, expected, failures) in [(28, 0.0..1.0, 1), (29, 0.0..1.0, 0), (30, 5.0..6.0, 0)] {
        let mut lab = Lab::new(minor);
        let mut spec = with_hook("true");
        spec["containers"][0]["lifecycle"]["preStop"] = json!({"sleep": {"seconds": 5}});
        let uid = lab.pod("p", spec);
        lab.seconds(4);
        let took = time_to_end(&mut lab, &uid);
        assert!(expected.contains(&took), "1.{minor}: {took}");
        assert_eq!(lab.messages("p", "FailedPreStopHook").len(), failures, "1.{minor}");
    }
}
