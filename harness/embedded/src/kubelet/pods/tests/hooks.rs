//! Lifecycle hooks.

use super::*;

const UNTIL_TERM: [&str; 3] = ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"];

fn with_hook(hook: &str, script: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 15,
        "containers": [{
            "name": "c",
            "command": UNTIL_TERM,
            "lifecycle": {hook: {"exec": {"command": ["sh", "-c", script]}}},
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
        let uid = lab.pod("p", with_hook("preStop", script));
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
    let mut spec = with_hook("preStop", "sleep 8; exit 3");
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
    let mut spec = with_hook("preStop", "sleep 8");
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
        let mut spec = with_hook("preStop", "true");
        spec["containers"][0]["lifecycle"]["preStop"] = json!({"sleep": {"seconds": 5}});
        let uid = lab.pod("p", spec);
        lab.seconds(4);
        let took = time_to_end(&mut lab, &uid);
        assert!(expected.contains(&took), "1.{minor}: {took}");
        assert_eq!(lab.messages("p", "FailedPreStopHook").len(), failures, "1.{minor}");
    }
    let mut lab = Lab::new(28);
    let mut spec = with_hook("postStart", "true");
    spec["containers"][0]["lifecycle"]["postStart"] = json!({"sleep": {"seconds": 5}});
    lab.pod("p", spec);
    lab.seconds(4);
    assert_eq!(
        lab.events("p")[..5],
        ["Pulled c", "Created c", "Started c", "FailedPostStartHook c", "Killing c"]
    );
}

#[test]
fn a_post_start_hook_delays_the_next_container() {
    for hook in [json!({"exec": {"command": ["sleep", "3"]}}), json!({"sleep": {"seconds": 3}})] {
        let mut lab = Lab::new(36);
        let first = json!({"name": "a", "lifecycle": {"postStart": hook}});
        let uid = lab.pod("p", json!({"containers": [first, {"name": "b"}]}));
        lab.seconds(6);
        let started: Vec<SimTime> = lab.kubelet().pods.running(&uid).iter().map(|one| one.started).collect();
        let [first, second] = started[..] else { panic!("{started:?}") };
        let after = second.since(first).as_secs_f64();
        assert!((3.0..3.6).contains(&after), "{hook}: {after}");
        assert_eq!(lab.status("p")["phase"], "Running");
    }
}

#[test]
fn a_failed_post_start_hook_kills_its_container() {
    let mut lab = Lab::new(36);
    let mut spec = with_hook("postStart", "echo no; exit 3");
    spec["restartPolicy"] = json!("Always");
    let containers = spec["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "d"}));
    let uid = lab.pod("p", spec);
    lab.seconds(8);
    let events = lab.events("p");
    assert_eq!(events[..5], ["Pulled c", "Created c", "Started c", "FailedPostStartHook c", "Killing c"]);
    assert_eq!(events[5], "Pulled d", "the sync goes on");
    assert_eq!(lab.messages("p", "Killing")[0], "FailedPostStartHook");
    let status = lab.status("p");
    let c = of(&status, "containerStatuses", "c");
    assert_eq!(c["lastState"]["terminated"]["exitCode"], 0, "{c}");
    let message = format!(
        "Exec lifecycle hook ([sh -c echo no; exit 3]) for Container \"c\" in Pod \"p_default({uid})\" failed - error: command 'sh -c echo no; exit 3' exited with 3: , message: \"no\\n\""
    );
    let waiting = &c["state"]["waiting"];
    let back_off = lab.messages("p", "BackOff");
    assert!(waiting["message"] == message || !back_off.is_empty(), "{waiting}");
}

/// The sync that starts the containers goes on: the eviction waits for the hook, and for the start
/// of the next container.
#[test]
fn an_eviction_waits_for_a_post_start_hook() {
    for minor in [31, 36] {
        let mut lab = Lab::new(minor);
        let mut spec = with_hook("postStart", "sleep 30");
        let containers = spec["containers"].as_array_mut().unwrap();
        containers.push(json!({"name": "d", "command": UNTIL_TERM}));
        let uid = lab.pod("p", spec);
        lab.seconds(4);
        let took = time_to_end(&mut lab, &uid);
        assert!((26.5..29.5).contains(&took), "1.{minor}: {took}");
        lab.seconds(3);
        let expected = ["Pulled c", "Created c", "Started c", "ExceededGracePeriod", "Pulled d", "Created d"];
        let events = lab.events("p");
        assert_eq!(events[..6], expected, "1.{minor}");
        assert_eq!(events[6..].len(), 3, "{events:?}");
        assert_eq!(lab.messages("p", "FailedPostStartHook"), [""; 0]);
    }
}
