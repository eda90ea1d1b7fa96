use super::*;

fn capacity(lab: &mut Lab) {
    lab.simulation.store.remove(Kind::Node, "", "n1");
    let node = json!({
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"}},
    });
    lab.simulation.store.create(Kind::Node, node, SimTime::ZERO).unwrap();
}

fn asking(memory: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]})
}

#[test]
fn rejects_excessive_memory_with_amounts() {
    let mut lab = Lab::new(31);
    capacity(&mut lab);
    lab.pod("a", asking("600Mi"));
    lab.seconds(3);
    let uid = lab.pod("b", asking("600Mi"));
    lab.seconds(3);
    let status = lab.status("b");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("OutOfmemory")));
    let message = "Node didn't have enough resource: memory, requested: 629145600, used: 629145600, capacity: 1073741824";
    assert_eq!(status["message"], format!("Pod was rejected: {message}"));
    assert_eq!(lab.messages("b", "OutOfmemory"), [message]);
    assert!(status.get("qosClass").is_none() && status.get("conditions").is_none(), "{status}");
    assert!(lab.kubelet().pods.is_cleaned_up(&uid));
    assert_eq!(lab.status("a")["phase"], "Running");
}

/// The kubelet forgets a pod whose object is gone before it has killed its containers.
#[test]
fn counts_no_pod_that_was_deleted_without_grace() {
    let mut lab = Lab::new(36);
    capacity(&mut lab);
    lab.pod("a", asking("600Mi"));
    lab.seconds(3);
    lab.simulation.store.remove(Kind::Pod, "default", "a");
    lab.pod("b", asking("600Mi"));
    lab.seconds(3);
    assert_eq!(lab.messages("b", "OutOfmemory"), Vec::<String>::new());
    assert_eq!(lab.status("b")["phase"], "Running");
}

/// `PodRequests`: the overhead counts without a request, and a pod that states only its CPU for all
/// containers asks for the memory of its containers.
#[test]
fn counts_overhead_and_what_a_pod_does_not_state() {
    let overhead = json!({"overhead": {"memory": "600Mi"}, "containers": [{"name": "c"}]});
    let mut with_cpu = asking("600Mi");
    with_cpu["resources"] = json!({"requests": {"cpu": "100m"}});
    for spec in [overhead, with_cpu] {
        let mut lab = Lab::new(36);
        capacity(&mut lab);
        for name in ["a", "b"] {
            lab.pod(name, spec.clone());
            lab.seconds(3);
        }
        assert_eq!(lab.status("a")["phase"], "Running");
        assert_eq!(lab.status("b")["reason"], "OutOfmemory", "{spec}");
        let message = "Node didn't have enough resource: memory, requested: 629145600, used: 629145600, capacity: 1073741824";
        assert_eq!(lab.messages("b", "OutOfmemory"), [message]);
    }
}

#[test]
fn rejects_too_many_pods() {
    let mut lab = Lab::new(32);
    capacity(&mut lab);
    for name in ["a", "b", "c"] {
        lab.pod(name, json!({"containers": [{"name": "c"}]}));
        lab.seconds(2);
    }
    let status = lab.status("c");
    assert_eq!(status["reason"], "OutOfpods");
    assert_eq!(status["qosClass"], "BestEffort");
}

#[test]
fn rejects_unmatched_node_selector() {
    let mut lab = Lab::new(30);
    capacity(&mut lab);
    lab.pod("a", json!({"nodeSelector": {"zone": "b"}, "containers": [{"name": "c"}]}));
    lab.pod("b", json!({"nodeSelector": {"zone": "a"}, "containers": [{"name": "c"}]}));
    lab.seconds(4);
    assert_eq!(lab.status("a")["reason"], "NodeAffinity");
    assert_eq!(lab.status("a")["message"], "Pod was rejected: Predicate NodeAffinity failed");
    assert_eq!(lab.status("b")["phase"], "Running");
}

#[test]
fn sidecars_by_version() {
    let spec = json!({
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "containers": [{"name": "c"}],
    });
    for (minor, phase, running) in [(27, "Pending", 1), (28, "Failed", 0), (29, "Running", 2)] {
        let mut lab = Lab::new(minor);
        capacity(&mut lab);
        let uid = lab.pod("p", spec.clone());
        lab.seconds(5);
        assert_eq!(lab.status("p")["phase"], phase, "1.{minor}");
        assert_eq!(lab.kubelet().pods.running(&uid).len(), running);
        if minor == 28 {
            assert_eq!(lab.status("p")["reason"], "InitContainerRestartPolicyForbidden");
        }
    }
}

#[test]
fn critical_pod_preempts_others() {
    let mut lab = Lab::new(31);
    capacity(&mut lab);
    lab.pod("a", asking("300Mi"));
    lab.pod("b", asking("600Mi"));
    lab.seconds(5);
    let mut critical = asking("400Mi");
    critical["priority"] = json!(2_000_000_000);
    let uid = lab.pod("c", critical);
    lab.millis(1900);
    // The pod waits for the end of the other one.
    assert!(lab.kubelet().pods.running(&uid).is_empty());
    lab.seconds(6);
    let status = lab.status("a");
    assert_eq!(lab.status("b")["phase"], "Running");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Preempting")));
    assert_eq!(status["message"], "Preempted in order to admit critical pod");
    assert_eq!(
        lab.condition("a", "DisruptionTarget")["message"],
        "Pod was preempted by Kubelet to accommodate a critical pod."
    );
    assert_eq!(lab.status("c")["phase"], "Running");
}

/// `HandleAdmissionFailure` of preemption.go: preemption is of no use to a pod that lacks more than
/// resources.
#[test]
fn critical_pod_that_does_not_tolerate_a_taint_preempts_nobody() {
    let mut lab = Lab::new(36);
    capacity(&mut lab);
    lab.simulation.store.update(Kind::Node, "", "n1", |node| {
        node["spec"]["taints"] = json!([{"key": "k", "effect": "NoExecute"}]);
    });
    let mut tolerant = asking("900Mi");
    tolerant["tolerations"] = json!([{"operator": "Exists"}]);
    lab.pod("a", tolerant);
    lab.seconds(5);
    let mut critical = asking("400Mi");
    critical["priority"] = json!(2_000_000_000);
    lab.pod("c", critical);
    lab.seconds(8);
    assert_eq!(lab.status("a")["phase"], "Running");
    // The taint manager deletes the pod.
    let message = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    assert_eq!(lab.messages("c", "TaintToleration"), [message]);
}

/// `evictPodsToFreeRequests` waits for the end of each pod before it kills the next one, and counts
/// those that ended.
#[test]
fn preemption_kills_one_pod_after_the_other() {
    let mut lab = Lab::new(31);
    capacity(&mut lab);
    for name in ["a", "b"] {
        let mut spec = asking("400Mi");
        spec["terminationGracePeriodSeconds"] = json!(6);
        spec["containers"][0]["command"] = json!(["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]);
        lab.pod(name, spec);
    }
    lab.seconds(5);
    let mut critical = asking("900Mi");
    critical["priority"] = json!(2_000_000_000);
    let uid = lab.pod("c", critical);
    let preempted =
        |lab: &Lab| ["a", "b"].iter().filter(|name| !lab.messages(name, "Preempting").is_empty()).count();
    // With kube-proxy, the critical pod is the fourth one: the first resource is `pods`.
    let counted = |lab: &Lab| {
        let metrics = lab.kubelet().eviction.metrics.text();
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("kubelet_preemptions{preemption_signal=\"pods\"} "));
        line.map_or(0, |count| count.parse().unwrap())
    };
    lab.seconds(4);
    assert_eq!((preempted(&lab), counted(&lab)), (1, 0));
    lab.seconds(5);
    assert_eq!((preempted(&lab), counted(&lab)), (2, 1));
    assert!(lab.kubelet().pods.running(&uid).is_empty());
    lab.seconds(9);
    assert_eq!(counted(&lab), 2);
    assert_eq!(lab.status("c")["phase"], "Running");
}

/// `GetResourceRequest` does not add the requests of sidecars before 1.34; the sums of the
/// admission contain them since 1.29.
#[test]
fn preemption_counts_sidecars_since_1_34() {
    for (minor, is_preempted) in [(31, false), (33, false), (34, true)] {
        let mut lab = Lab::new(minor);
        capacity(&mut lab);
        let resources = |memory: &str| json!({"requests": {"memory": memory}});
        lab.pod("a", json!({
            "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": resources("300Mi")}],
            "containers": [{"name": "c", "resources": resources("100Mi")}],
        }));
        lab.seconds(5);
        let mut critical = asking("1000Mi");
        critical["priority"] = json!(2_000_000_000);
        lab.pod("c", critical);
        lab.seconds(9);
        assert_eq!(lab.status("a")["reason"] == "Preempting", is_preempted, "1.{minor}");
        let expected = if is_preempted { Value::Null } else { json!("UnexpectedAdmissionError") };
        assert_eq!(lab.status("c")["reason"], expected, "1.{minor}: {}", lab.status("c"));
    }
}

#[test]
fn extended_resources_are_kept_and_counted() {
    const TOY: &str = "example.com/toy";
    let mut lab = Lab::new(31);
    let asks = |count: u32, priority: i64| {
        let amounts = json!({TOY: count.to_string()});
        json!({
            "priority": priority,
            "containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}],
        })
    };
    let has = |lab: &Lab, list: &str| {
        lab.simulation.store.get(Kind::Node, "", "n1").unwrap()["status"][list][TOY].clone()
    };
    // Extended resources that the node does not know are unlimited.
    lab.pod("early", asks(9, 0));
    lab.seconds(3);
    assert_eq!(lab.status("early")["phase"], "Running");
    lab.simulation.store.remove(Kind::Pod, "default", "early");
    lab.simulation.store.update(Kind::Node, "", "n1", |node| node["status"]["capacity"][TOY] = json!("2"));
    lab.seconds(12);
    assert_eq!((has(&lab, "capacity"), has(&lab, "allocatable")), (json!("2"), json!("2")));
    lab.pod("a", asks(2, 0));
    lab.seconds(3);
    lab.pod("b", asks(1, 0));
    lab.seconds(3);
    let status = lab.status("b");
    assert_eq!(status["reason"], "OutOfexample.com/toy");
    let message = "Node didn't have enough resource: example.com/toy, requested: 1, used: 2, capacity: 2";
    assert_eq!(status["message"], format!("Pod was rejected: {message}"));
    lab.pod("critical", asks(1, 2_000_000_000));
    lab.seconds(6);
    assert_eq!(lab.status("a")["reason"], "Preempting");
    assert_eq!(lab.messages("a", "Preempting"), ["Preempted in order to admit critical pod"]);
    assert_eq!(lab.status("critical")["phase"], "Running");
    // A restarted kubelet treats the node as new.
    lab.simulation.with(|_, nodes, ctx| {
        let node = nodes.get_mut("n1").unwrap();
        node.kubelet.stop();
        node.kubelet.start(&mut node.machine, ctx);
    });
    lab.seconds(12);
    assert_eq!((has(&lab, "capacity"), has(&lab, "allocatable")), (json!("0"), json!("0")));
}

#[test]
fn reports_unavailable_images() {
    for (image, policy, reason, events) in [
        ("elsewhere.io/thing:1", "Never", "ErrImageNeverPull", vec!["ErrImageNeverPull c", "Failed c"]),
        (
            "registry.invalid/thing:1",
            "IfNotPresent",
            "ImagePullBackOff",
            vec!["Pulling c", "Failed c", "Failed c", "BackOff c", "Failed c"],
        ),
    ] {
        let mut lab = Lab::new(31);
        let spec = json!({"containers": [{"name": "c", "image": image, "imagePullPolicy": policy}]});
        lab.pod("p", spec);
        // The status has the result of the sync before the last one: of the second, after one
        // second, from the third, after at most 17 s.
        lab.seconds(19);
        let status = lab.status("p");
        assert_eq!(of(&status, "containerStatuses", "c")["state"]["waiting"]["reason"], reason, "{status}");
        assert_eq!(status["phase"], "Pending");
        assert_eq!(lab.events("p")[..events.len()], events);
    }
}

#[test]
fn pulls_image_once() {
    let mut lab = Lab::new(31);
    for name in ["a", "b"] {
        lab.pod(name, json!({"containers": [{"name": "c", "image": "elsewhere.io/thing:1"}]}));
        lab.seconds(6);
    }
    assert_eq!(lab.events("a"), ["Pulling c", "Pulled c", "Created c", "Started c"]);
    assert_eq!(lab.events("b"), ["Pulled c", "Created c", "Started c"]);
}

#[test]
fn rejects_log_requests() {
    let mut lab = Lab::new(31);
    lab.pod("p", json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}));
    lab.seconds(4);
    let waiting = "container \"c\" in pod \"p\" is waiting to start: PodInitializing";
    for (pod, container, previous, code, text) in [
        ("p", "c", false, 400, waiting),
        ("p", "x", false, 404, "container \"x\" not found in pod \"p\""),
        ("q", "c", false, 404, "pod \"q\" does not exist"),
        ("p", "i", true, 400, "previous terminated container \"i\" in pod \"p\" not found"),
        ("p", "i", false, 200, ""),
    ] {
        let answer = lab.log(pod, container, PodLogOptions { previous, ..PodLogOptions::default() });
        let answer = answer.map_or_else(|status| (status.code, status.message), |log| (200, log));
        assert_eq!(answer, (code, text.to_owned()));
    }
}

#[test]
fn waits_for_config_map_of_variables() {
    let mut lab = Lab::new(31);
    let container = json!({"name": "c", "envFrom": [{"configMapRef": {"name": "absent"}}]});
    lab.pod("p", json!({"containers": [container]}));
    lab.seconds(8);
    let status = lab.status("p");
    let waiting = &of(&status, "containerStatuses", "c")["state"]["waiting"];
    assert_eq!(
        *waiting,
        json!({"reason": "CreateContainerConfigError", "message": "configmap \"absent\" not found"})
    );
    // A relist that finds no change causes no sync: only every 10 to 15 s does the kubelet try
    // again. A real kubelet (1.36.3) sends two or three events in the first two seconds.
    let failures = |lab: &Lab| {
        let events = lab.all_events("p");
        events
            .iter()
            .filter(|event| event["reason"] == "Failed")
            .filter_map(|event| event["count"].as_u64())
            .sum::<u64>()
    };
    let at_first = failures(&lab);
    assert!((2..=3).contains(&at_first), "{at_first}");
    lab.seconds(30);
    assert!((at_first + 2..=at_first + 3).contains(&failures(&lab)), "{}", failures(&lab));
    assert!(lab.messages("p", "Failed").contains(&"Error: configmap \"absent\" not found".to_owned()));
}
