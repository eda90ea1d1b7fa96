use super::*;

/// Returns a spec with a container that handles SIGTERM and one that ignores it.
fn two_containers() -> Value {
    json!({"containers": [{"name": "el1", "command": ["/agnhost", "pause"]}, {"name": "el2"}]})
}

fn delete(lab: &mut Lab, name: &str, grace: u64) {
    lab.simulation.store.update(Kind::Pod, "default", name, |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:09Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    });
}

#[test]
fn evicted_pod_ends_as_recorded() {
    for minor in [31, 32, 36] {
        let mut lab = Lab::new(minor);
        let uid = lab.pod("p", two_containers());
        lab.seconds(5);
        let before = lab.status("p");
        lab.evict(&uid, "The node was low.", Some(1));
        lab.seconds(1);
        // A terminal phase is held back while a container runs.
        assert_eq!(lab.status("p")["phase"], "Running");
        assert!(lab.condition("p", "DisruptionTarget").is_null());
        assert!(!lab.kubelet().pods.is_cleaned_up(&uid));
        lab.seconds(6);
        assert!(lab.kubelet().pods.is_cleaned_up(&uid));
        let status = lab.status("p");
        for (field, value) in [("phase", "Failed"), ("reason", "Evicted"), ("message", "The node was low.")] {
            assert_eq!(status[field], value);
        }
        let conditions = status["conditions"].as_array().unwrap();
        let reported: Vec<_> = conditions
            .iter()
            .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap(), c["reason"].as_str()))
            .collect();
        assert_eq!(
            reported,
            [
                ("DisruptionTarget", "True", Some("TerminationByKubelet")),
                ("PodReadyToStartContainers", "False", None),
                ("Initialized", "True", None),
                ("Ready", "False", Some("PodFailed")),
                ("ContainersReady", "False", Some("PodFailed")),
                ("PodScheduled", "True", None),
            ]
        );
        assert_eq!(conditions[0]["message"], "The node was low.");
        assert_eq!(conditions[0]["observedGeneration"], if minor == 36 { json!(1) } else { Value::Null });
        // The first container that exits is removed before its exit is observed, as in the
        // recordings.
        let first = of(&status, "containerStatuses", "el1");
        assert_eq!(first["state"]["terminated"]["reason"], "ContainerStatusUnknown");
        assert_eq!(
            first["lastState"]["terminated"]["message"],
            "The container could not be located when the pod was deleted.  The container used to be Running"
        );
        assert_eq!(first["restartCount"], 1);
        let last = &of(&status, "containerStatuses", "el2")["state"]["terminated"];
        assert_eq!((&last["exitCode"], &last["reason"]), (&json!(137), &json!("Error")));
        assert_eq!(status["podIP"], before["podIP"]);
        assert_eq!(status["startTime"], before["startTime"]);
        assert_eq!(lab.events("p")[6..], ["Killing el1", "Killing el2"]);
        // The logs were removed.
        let log = lab.log("p", "el2", PodLogOptions::default()).unwrap();
        assert!(log.starts_with("unable to retrieve container logs for containerd://"), "{log:?}");
        assert_eq!(
            lab.log("p", "el1", PodLogOptions::default()).unwrap_err().message,
            "container \"el1\" in pod \"p\" is terminated"
        );
    }
}

#[test]
fn single_container_exit_is_reported() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"containers": [{"name": "c"}]}));
    lab.seconds(5);
    lab.evict(&uid, "why", Some(1));
    lab.seconds(6);
    let terminated = &of(&lab.status("p"), "containerStatuses", "c")["state"]["terminated"].clone();
    assert_eq!((&terminated["exitCode"], &terminated["reason"]), (&json!(137), &json!("Error")));
}

#[test]
fn evicted_pod_succeeds_if_all_containers_succeed() {
    // As in soft.json of 1.31 and 1.32: `Succeeded` without a reason, but with the condition.
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"containers": [{"name": "c"}]}));
    lab.seconds(5);
    lab.evict(&uid, "why", Some(3));
    lab.millis(500);
    lab.exit(&uid, "c", 0);
    lab.seconds(5);
    let status = lab.status("p");
    if of(&status, "containerStatuses", "c")["state"]["terminated"]["exitCode"] == 0 {
        assert_eq!((&status["phase"], status.get("reason")), (&json!("Succeeded"), None));
        assert_eq!(lab.condition("p", "DisruptionTarget")["message"], "why");
    } else {
        assert_eq!(status["phase"], "Failed");
    }
}

#[test]
fn evicted_pending_pod_keeps_containers_waiting() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}));
    lab.seconds(4);
    lab.evict(&uid, "why", Some(1));
    lab.seconds(6);
    let status = lab.status("p");
    assert_eq!(status["phase"], "Failed");
    assert_eq!(of(&status, "containerStatuses", "c")["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(lab.condition("p", "Initialized")["reason"], "ContainersNotInitialized");
}

/// A kill does not interrupt the pull of an image; of two kills meanwhile, the last reason counts.
#[test]
fn an_eviction_waits_for_a_pull() {
    let mut lab = Lab::new(36);
    let uid = lab.pod("p", json!({"containers": [{"name": "c", "image": "elsewhere.io/thing:1"}]}));
    while lab.events("p").is_empty() {
        lab.millis(50);
    }
    for message in ["first", "second"] {
        lab.evict(&uid, message, Some(1));
        lab.millis(50);
    }
    assert_eq!(lab.events("p"), ["Pulling c"]);
    lab.seconds(6);
    assert_eq!(lab.events("p"), ["Pulling c", "Pulled c", "Created c", "Started c", "Killing c"]);
    let status = lab.status("p");
    assert_eq!((&status["reason"], &status["message"]), (&json!("Evicted"), &json!("second")));
}

#[test]
fn first_eviction_reason_is_kept() {
    let mut lab = Lab::new(36);
    let uid = lab.pod("p", two_containers());
    lab.seconds(5);
    lab.evict(&uid, "first", Some(1));
    lab.millis(300);
    lab.evict(&uid, "second", Some(1));
    lab.seconds(6);
    assert_eq!(lab.status("p")["message"], "first");
    assert_eq!(lab.condition("p", "DisruptionTarget")["message"], "first");
}

#[test]
fn sidecars_stop_last_within_grace_period() {
    let spec = json!({
        "terminationGracePeriodSeconds": 30,
        "initContainers": [
            {"name": "s1", "restartPolicy": "Always", "command": ["/agnhost", "pause"]},
            {"name": "s2", "restartPolicy": "Always", "command": ["/agnhost", "pause"]},
        ],
        "containers": [{"name": "c", "command": ["/agnhost", "pause"], "lifecycle": {"preStop": {"sleep": {"seconds": 4}}}}],
    });
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", spec);
    lab.seconds(8);
    delete(&mut lab, "p", 30);
    lab.seconds(3);
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 3);
    lab.seconds(5);
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 0);
    lab.seconds(3);
    assert_eq!(lab.get("p"), None);
}

#[test]
fn zero_grace_period_means_pods_own_until_1_30() {
    for (minor, over) in [(30, false), (31, true)] {
        let mut lab = Lab::new(minor);
        let uid = lab.pod("p", json!({"terminationGracePeriodSeconds": 30, "containers": [{"name": "c"}]}));
        lab.seconds(5);
        lab.evict(&uid, "why", Some(0));
        lab.seconds(5);
        assert_eq!(lab.status("p")["phase"] == "Failed", over, "1.{minor}");
        lab.seconds(7);
        assert_eq!(lab.events("p").contains(&"ExceededGracePeriod".to_owned()), !over);
        lab.seconds(25);
        assert_eq!(lab.status("p")["reason"], "Evicted");
    }
}

/// `calculateEffectiveGracePeriod`: a negative override is shorter than any other, and at least 1 s
/// is granted.
#[test]
fn negative_grace_period_means_one_second() {
    for minor in [27, 30, 31, 36] {
        let mut lab = Lab::new(minor);
        let script = "trap '' TERM; sleep infinity & wait; wait";
        let spec = json!({"terminationGracePeriodSeconds": 20, "containers": [{"name": "c", "command": ["sh", "-c", script]}]});
        let uid = lab.pod("a", spec);
        lab.seconds(5);
        lab.evict(&uid, "low", Some(-1));
        lab.seconds(4);
        assert_eq!(lab.status("a")["phase"], "Failed", "1.{minor}");
    }
}

#[test]
fn deleted_pod_ends_within_grace_period() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", two_containers());
    lab.seconds(5);
    delete(&mut lab, "p", 3);
    lab.seconds(2);
    assert!(lab.get("p").is_some());
    lab.seconds(5);
    assert_eq!(lab.get("p"), None);
    assert!(lab.kubelet().pods.is_cleaned_up(&uid));
    assert!(!lab.kubelet().pods.runtime.pods.contains_key(&uid));
}

/// Observed on a real 1.36.2, whose pod was evicted while its deletion waited.
#[test]
fn grace_period_of_a_terminating_pod_is_not_shortened() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"terminationGracePeriodSeconds": 60, "containers": [{"name": "c"}]}));
    lab.seconds(5);
    delete(&mut lab, "p", 60);
    lab.seconds(5);
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 1);
    delete(&mut lab, "p", 1);
    lab.evict(&uid, "why", Some(1));
    lab.seconds(40);
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 1);
    lab.seconds(20);
    assert_eq!(lab.get("p"), None);
}

#[test]
fn kills_pod_without_api_object() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", two_containers());
    lab.seconds(5);
    lab.simulation.store.remove(Kind::Pod, "default", "p");
    lab.seconds(8);
    assert!(lab.kubelet().pods.running(&uid).is_empty());
    assert!(!lab.kubelet().pods.runtime.pods.contains_key(&uid));
}

#[test]
fn kills_starting_pod() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", two_containers());
    lab.millis(300);
    lab.evict(&uid, "why", Some(1));
    lab.seconds(5);
    assert_eq!(lab.status("p")["reason"], "Evicted");
    assert!(lab.kubelet().pods.running(&uid).is_empty());
    assert_eq!(lab.events("p"), Vec::<String>::new());
}

/// `UpdatePod` of a finished pod returns without an answer, and `killPodNow` waits for 10 s, also
/// if the object is deleted meanwhile (kubernetes/kubernetes#118679).
#[test]
fn eviction_of_a_finished_pod_times_out() {
    for is_deleted in [false, true] {
        let mut lab = Lab::new(36);
        let uid = lab.pod("p", json!({"containers": [{"name": "c"}]}));
        lab.seconds(5);
        lab.exit(&uid, "c", 0);
        lab.seconds(4);
        assert!(lab.kubelet().pods.is_cleaned_up(&uid));
        lab.evict(&uid, "why", Some(1));
        if is_deleted {
            delete(&mut lab, "p", 30);
        }
        lab.seconds(9);
        assert_eq!(lab.get("p").is_none(), is_deleted);
        assert!(!lab.events("p").contains(&"ExceededGracePeriod".to_owned()));
        lab.seconds(2);
        let message = "Container runtime did not kill the pod within specified grace period.";
        assert_eq!(lab.messages("p", "ExceededGracePeriod"), [message]);
        assert!(lab.get("p").is_none_or(|pod| pod["status"]["phase"] == "Succeeded"));
        assert_eq!(lab.kubelet().pods.workers.contains_key(&uid), !is_deleted);
    }
}

#[test]
fn deletion_completes_after_end() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"containers": [{"name": "c"}]}));
    lab.seconds(5);
    lab.exit(&uid, "c", 0);
    lab.seconds(4);
    assert_eq!(lab.status("p")["phase"], "Succeeded");
    // The API server waits for a terminal status.
    delete(&mut lab, "p", 30);
    lab.seconds(1);
    assert_eq!(lab.get("p"), None);
}

#[test]
fn active_deadline_ends_a_pod() {
    let mut lab = Lab::new(36);
    let mut spec = two_containers();
    spec["activeDeadlineSeconds"] = json!(20);
    spec["terminationGracePeriodSeconds"] = json!(1);
    lab.pod("p", spec);
    lab.seconds(18);
    assert_eq!(lab.status("p")["phase"], "Running");
    lab.seconds(9);
    let status = lab.status("p");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("DeadlineExceeded")));
    let expected = "Pod was active on the node longer than the specified deadline";
    assert_eq!(lab.messages("p", "DeadlineExceeded"), [expected]);
    let events = lab.all_events("p");
    let event = events.iter().find(|event| event["reason"] == "DeadlineExceeded").unwrap();
    assert_eq!(event["type"], "Normal");
}

/// `generateAPIPodStatus` asks for the deadline whenever it computes a status, and counts from the
/// start time of the pod.
#[test]
fn a_deadline_replaces_the_reason_of_an_eviction() {
    let mut lab = Lab::new(36);
    let script = "trap '' TERM; while true; do sleep 1; done";
    let spec =
        json!({"activeDeadlineSeconds": 20, "containers": [{"name": "c", "command": ["sh", "-c", script]}]});
    let uid = lab.pod("p", spec.clone());
    lab.seconds(17);
    lab.evict(&uid, "why", Some(6));
    lab.seconds(12);
    assert_eq!(lab.status("p")["reason"], "DeadlineExceeded");
    assert_eq!(lab.condition("p", "DisruptionTarget")["message"], "why");
    lab.pod("q", spec);
    lab.seconds(15);
    lab.simulation.with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().kubelet.restart(ctx));
    lab.seconds(12);
    assert_eq!(lab.status("q")["reason"], "DeadlineExceeded");
}

/// `newTerminationOrdering` of kuberuntime_termination_order.go.
#[test]
fn sidecars_do_not_wait_for_plain_init_containers() {
    let stubborn = "trap '' TERM; while true; do sleep 1; done";
    let spec = json!({
        "terminationGracePeriodSeconds": 20,
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "command": ["/agnhost", "pause"]},
            {"name": "init", "command": ["sh", "-c", stubborn]},
        ],
        "containers": [{"name": "c"}],
    });
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", spec);
    lab.seconds(8);
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 2);
    lab.evict(&uid, "why", Some(20));
    lab.seconds(4);
    let names: Vec<_> = lab.kubelet().pods.running(&uid).into_iter().map(|running| running.name).collect();
    assert_eq!(names, ["init"]);
}
