use super::*;

fn three() -> Value {
    json!({
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "containers": [{"name": "el1"}, {"name": "el2"}],
    })
}

#[test]
fn pod_starts_as_recorded() {
    let started = ["side", "el1", "el2"]
        .iter()
        .flat_map(|name| ["Pulled", "Created", "Started"].map(|reason| format!("{reason} {name}")));
    let started: Vec<String> = started.collect();
    for (minor, pulled, created) in [
        (31, "already present on machine", "Created container: el1"),
        (32, "already present on machine", "Created container: el1"),
        (36, "already present on machine and can be accessed by the pod", "Container created"),
    ] {
        let mut lab = Lab::new(minor);
        lab.pod("p", three());
        lab.seconds(6);
        assert_eq!(lab.events("p"), started, "1.{minor}");
        assert_eq!(lab.messages("p", "Pulled")[1], format!("Container image {AGNHOST:?} {pulled}"));
        assert_eq!(lab.messages("p", "Created")[1], created);
        let status = lab.status("p");
        assert_eq!(status["phase"], "Running", "{status}");
        let conditions = status["conditions"].as_array().unwrap();
        let types: Vec<_> = conditions.iter().map(|condition| condition["type"].as_str().unwrap()).collect();
        assert_eq!(
            types,
            ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        );
        assert!(conditions.iter().all(|condition| condition["status"] == "True"));
        assert_eq!(conditions[0]["observedGeneration"], if minor == 36 { json!(1) } else { Value::Null });
        assert_eq!(of(&status, "initContainerStatuses", "side")["started"], true);
        assert_eq!(of(&status, "containerStatuses", "el1")["ready"], true);
        assert_eq!(status["podIPs"][0]["ip"], status["podIP"]);
        assert_eq!(status["qosClass"], "BestEffort");
    }
}

#[test]
fn status_fields_by_version() {
    let fields = |minor| {
        let mut lab = Lab::new(minor);
        lab.pod(
            "p",
            json!({"containers": [{
                "name": "c",
                "resources": {"requests": {"memory": "1Mi"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}],
            }]}),
        );
        lab.seconds(4);
        let status = lab.status("p");
        let container = of(&status, "containerStatuses", "c").clone();
        let has = |value: &Value, field: &str| value.get(field).is_some();
        (
            has(&status, "hostIPs"),
            has(&container, "volumeMounts"),
            has(&container, "allocatedResources") && has(&container, "resources") && has(&container, "user"),
            has(&status, "observedGeneration"),
            has(&status, "resources") && has(&status, "allocatedResources"),
        )
    };
    assert_eq!(fields(27), (false, false, false, false, false));
    assert_eq!(fields(29), (true, false, false, false, false));
    assert_eq!(fields(31), (true, true, false, false, false));
    assert_eq!(fields(33), (true, true, true, false, false));
    assert_eq!(fields(35), (true, true, true, true, false));
    assert_eq!(fields(36), (true, true, true, true, true));
}

#[test]
fn init_containers_run_in_order() {
    let mut lab = Lab::new(31);
    let uid = lab.pod(
        "p",
        json!({
            "initContainers": [{"name": "i1"}, {"name": "i2"}],
            "containers": [{"name": "c"}],
        }),
    );
    lab.seconds(3);
    assert_eq!(lab.events("p"), ["Pulled i1", "Created i1", "Started i1"]);
    let status = lab.status("p");
    assert_eq!(status["phase"], "Pending");
    assert_eq!(of(&status, "containerStatuses", "c")["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(lab.condition("p", "Initialized")["message"], "containers with incomplete status: [i1 i2]");
    lab.exit(&uid, "i1", 0);
    lab.seconds(3);
    lab.exit(&uid, "i2", 0);
    lab.seconds(3);
    let status = lab.status("p");
    assert_eq!(status["phase"], "Running");
    let first = of(&status, "initContainerStatuses", "i1");
    assert_eq!(first["state"]["terminated"]["reason"], "Completed");
    assert_eq!((&first["ready"], &first["started"]), (&json!(true), &json!(false)));
}

#[test]
fn failed_init_container_fails_pod() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}));
    lab.seconds(3);
    lab.exit(&uid, "i", 1);
    lab.seconds(4);
    let status = lab.status("p");
    assert_eq!(status["phase"], "Failed");
    assert_eq!(of(&status, "initContainerStatuses", "i")["state"]["terminated"]["exitCode"], 1);
    assert!(lab.kubelet().pods.is_cleaned_up(&uid));
}

#[test]
fn restarts_containers_by_policy() {
    for (policy, code, again) in
        [("Always", 0, true), ("OnFailure", 0, false), ("OnFailure", 3, true), ("Never", 3, false)]
    {
        let mut lab = Lab::new(31);
        let uid =
            lab.pod("p", json!({"restartPolicy": policy, "containers": [{"name": "c"}, {"name": "d"}]}));
        lab.seconds(3);
        lab.exit(&uid, "c", code);
        lab.seconds(3);
        let status = lab.status("p");
        let c = of(&status, "containerStatuses", "c");
        assert_eq!(c["restartCount"], u64::from(again), "{policy} {code}");
        assert_eq!(status["phase"], "Running");
        if again {
            assert_eq!(c["lastState"]["terminated"]["exitCode"], code);
            assert!(!c["state"]["running"].is_null());
        }
    }
}

#[test]
fn crash_loop_backoff_grows() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", json!({"restartPolicy": "Always", "containers": [{"name": "c"}]}));
    lab.seconds(3);
    lab.exit(&uid, "c", 1);
    lab.seconds(3);
    lab.exit(&uid, "c", 1);
    lab.seconds(3);
    assert_eq!(lab.events("p").last().unwrap(), "BackOff c");
    lab.seconds(8);
    let (status, format) = (lab.status("p"), format!("p_default({uid})"));
    let waiting = &of(&status, "containerStatuses", "c")["state"]["waiting"];
    if !waiting.is_null() {
        assert_eq!(waiting["reason"], "CrashLoopBackOff");
        assert_eq!(waiting["message"], format!("back-off 10s restarting failed container=c pod={format}"));
    }
    lab.seconds(20);
    let status = lab.status("p");
    let c = of(&status, "containerStatuses", "c");
    assert_eq!(c["restartCount"], 2);
    assert!(!c["state"]["running"].is_null(), "{c}");
}

#[test]
fn stops_sidecars_after_success() {
    let mut lab = Lab::new(31);
    let uid = lab.pod(
        "p",
        json!({
            "initContainers": [
                {"name": "s1", "restartPolicy": "Always"},
                {"name": "s2", "restartPolicy": "Always", "command": ["/agnhost", "pause"]},
            ],
            "containers": [{"name": "c"}],
        }),
    );
    lab.seconds(6);
    lab.exit(&uid, "c", 0);
    lab.seconds(8);
    let status = lab.status("p");
    assert_eq!(status["phase"], "Succeeded", "{status}");
    assert_eq!(lab.condition("p", "Ready")["reason"], "PodCompleted");
    let events = lab.events("p");
    assert!(events.contains(&"Killing s1".to_owned()) && events.contains(&"Killing s2".to_owned()));
    assert_eq!(of(&status, "initContainerStatuses", "s2")["state"]["terminated"]["exitCode"], 2);
}

#[test]
fn restarts_sidecar() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", three());
    lab.seconds(6);
    lab.exit(&uid, "side", 1);
    lab.seconds(3);
    let status = lab.status("p");
    assert_eq!(of(&status, "initContainerStatuses", "side")["restartCount"], 1);
    assert_eq!(status["phase"], "Running");
}

#[test]
fn starts_ephemeral_container() {
    let mut lab = Lab::new(36);
    let uid = lab.pod("p", json!({"containers": [{"name": "c"}]}));
    lab.seconds(3);
    lab.simulation.store.update(Kind::Pod, "default", "p", |pod| {
        pod["spec"]["ephemeralContainers"] = json!([{"name": "debugger", "image": AGNHOST}]);
        pod["metadata"]["generation"] = json!(2);
    });
    lab.seconds(4);
    assert_eq!(lab.events("p").last().unwrap(), "Started debugger");
    let status = lab.status("p");
    let debugger = of(&status, "ephemeralContainerStatuses", "debugger");
    assert!(!debugger["state"]["running"].is_null() && debugger.get("started").is_none());
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 2);
    assert_eq!(status["observedGeneration"], 2);
}

#[test]
fn restarted_kubelet_keeps_pods() {
    let mut lab = Lab::new(31);
    let uid = lab.pod("p", three());
    lab.seconds(6);
    let (before, events) = (lab.status("p"), lab.events("p"));
    lab.simulation.with(|_, nodes, ctx| {
        let node = nodes.get_mut("n1").unwrap();
        node.kubelet.stop();
        node.start(ctx);
    });
    assert_eq!(lab.kubelet().pods.running(&uid).len(), 3);
    assert_eq!(lab.kubelet().pods.active().iter().filter(|active| active.pod.metadata.uid == uid).count(), 1);
    lab.seconds(5);
    assert_eq!(lab.status("p"), before);
    assert_eq!(lab.events("p"), events);
    lab.exit(&uid, "el1", 0);
    lab.exit(&uid, "el2", 0);
    lab.seconds(8);
    assert_eq!(lab.status("p")["phase"], "Succeeded");
}

#[test]
fn every_node_runs_kube_proxy() {
    let mut lab = Lab::new(31);
    lab.seconds(5);
    let pods: Vec<Value> =
        lab.simulation.store.list(Kind::Pod, Some("kube-system")).map(|pod| Value::clone(pod)).collect();
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["status"]["phase"], "Running");
    assert!(pods[0]["metadata"]["name"].as_str().unwrap().starts_with("kube-proxy-"));
    assert!(lab.kubelet().pods.active()[0].pod.is_critical());
}

#[test]
fn same_seed_makes_same_pods() {
    let run = || {
        let mut lab = Lab::new(36);
        let uid = lab.pod("p", three());
        lab.seconds(6);
        lab.evict(&uid, "why", Some(1));
        lab.seconds(8);
        (lab.get("p"), lab.all_events("p"))
    };
    assert_eq!(run(), run());
}

#[test]
fn pod_waits_for_config_map() {
    let mut lab = Lab::new(31);
    let volume =
        |name: &str, optional: bool| json!({"name": name, "configMap": {"name": name, "optional": optional}});
    lab.pod(
        "p",
        json!({"containers": [{"name": "c"}], "volumes": [volume("missing", false), volume("other", true)]}),
    );
    lab.seconds(3);
    assert_eq!(
        of(&lab.status("p"), "containerStatuses", "c")["state"]["waiting"]["reason"],
        "ContainerCreating"
    );
    let messages = lab.messages("p", "FailedMount");
    assert_eq!(
        messages[0],
        r#"MountVolume.SetUp failed for volume "missing" : configmap "missing" not found"#
    );
    let map = json!({"metadata": {"name": "missing", "namespace": "default"}});
    let now = lab.simulation.now;
    lab.simulation.with_context(|ctx| ctx.store.create(Kind::ConfigMap, map, now)).unwrap();
    lab.seconds(8);
    assert_eq!(lab.status("p")["phase"], "Running");
}
