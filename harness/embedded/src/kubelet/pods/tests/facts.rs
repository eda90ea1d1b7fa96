//! Environment, mounts and OOM scores of containers.

use super::*;
use crate::machine::Cgroup;

/// Returns the log of a container.
fn log(lab: &mut Lab, pod: &str, container: &str) -> String {
    lab.log(pod, container, PodLogOptions::default()).unwrap()
}

fn prints(script: &str, resources: Value) -> Value {
    json!({"name": "c", "command": ["sh", "-c", script], "resources": resources})
}

#[test]
fn container_reads_oom_score_of_qos_class() {
    const SCORE: &str = "cat /proc/self/oom_score_adj /proc/1/oom_score_adj";
    let mut lab = Lab::new(31);
    let all = json!({"memory": "256Mi", "cpu": "100m"});
    for (name, resources, priority, score) in [
        ("guaranteed", json!({"limits": all, "requests": all}), 0, "-997"),
        ("best-effort", json!({}), 0, "1000"),
        // 1000 minus the share of 256 MiB in 16 GiB, in thousandths.
        ("burstable", json!({"requests": {"memory": "256Mi"}}), 0, "985"),
        ("system-node-critical", json!({}), 2_000_001_000, "-997"),
        // Critical for the cluster, not for the node.
        ("system-cluster-critical", json!({}), 2_000_000_000, "1000"),
    ] {
        let spec = json!({
            "priority": priority,
            "priorityClassName": name,
            "containers": [prints(SCORE, resources)],
        });
        lab.pod(name, spec);
        lab.seconds(3);
        assert_eq!(log(&mut lab, name, "c"), format!("{score}\n{score}\n"), "{name}");
    }
}

#[test]
fn a_container_leaves_a_termination_message() {
    const LONG: &str = "i=0; while [ $i -lt 500 ]; do printf 0123456789 >> /dev/termination-log; i=$((i + 1)); done; \
                        printf why >> /dev/termination-log; exit 3";
    let mut lab = Lab::new(33);
    for (name, script, expected) in [
        ("meminfo", "cat /proc/meminfo > /dev/termination-log", Some("MemTotal:       16777216 kB\n")),
        ("failed", "printf why > /dev/termination-log; exit 3", Some("why")),
        ("long", LONG, Some("")),
        ("silent", "echo printed", None),
    ] {
        lab.pod(name, json!({"restartPolicy": "Never", "containers": [prints(script, json!({}))]}));
        lab.seconds(4);
        let pod = lab.get(name).unwrap();
        let terminated = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        let message = terminated["message"].as_str();
        if name == "long" {
            let end = message.unwrap_or_default();
            assert!(end.len() == 4096 && end.ends_with("789why"), "{pod}");
        }
        assert!(
            message.is_some_and(|text| text.starts_with(expected.unwrap_or_default())) == expected.is_some(),
            "{pod}"
        );
    }
}

/// `normalizeStatus`: 12 KiB for all containers of a pod.
#[test]
fn containers_share_the_length_of_termination_messages() {
    const LONG: &str =
        "i=0; while [ $i -lt 500 ]; do printf 0123456789 >> /dev/termination-log; i=$((i + 1)); done";
    let mut lab = Lab::new(33);
    for (count, length) in [(3, 4096), (4, 3072)] {
        let containers = (0..count).map(|index| {
            let mut container = prints(LONG, json!({}));
            container["name"] = json!(format!("c{index}"));
            container
        });
        let name = format!("p{count}");
        lab.pod(&name, json!({"containers": containers.collect::<Vec<_>>()}));
        lab.seconds(8);
        for status in lab.status(&name)["containerStatuses"].as_array().unwrap() {
            let message = status["state"]["terminated"]["message"].as_str().unwrap();
            assert_eq!(message.len(), length, "{count}");
        }
    }
}

#[test]
fn oom_killer_kills_whole_container_since_1_28() {
    const GROUP: &str = "cat /sys/fs/cgroup/memory.oom.group";
    for (minor, single, expected) in
        [(27, false, "0\n"), (28, false, "1\n"), (31, true, "1\n"), (32, true, "0\n")]
    {
        let mut lab = Lab::new(minor);
        if single {
            lab.simulation.with(|_, nodes, ctx| {
                let node = nodes.get_mut("n1").unwrap();
                node.kubelet.config.file.insert("singleProcessOOMKill".to_owned(), json!(true));
                node.kubelet.stop();
                node.kubelet.start(&mut node.machine, ctx);
            });
        }
        lab.pod("p", json!({"containers": [prints(GROUP, json!({}))]}));
        lab.seconds(4);
        assert_eq!(log(&mut lab, "p", "c"), expected, "1.{minor}");
    }
}

/// `oom_watcher_linux.go`, and `StreamOoms` of cAdvisor's oomparser.go.
#[test]
fn system_oom_is_an_oom_of_the_root_cgroup() {
    const GROW: &str =
        "/agnhost stress --mem-alloc-size 10Mi --mem-alloc-sleep 10ms --mem-total 1000Mi & sleep 1000";
    for (group, limits, reported) in [
        (Cgroup::Root, json!({"memory": "2Gi"}), 1),
        (Cgroup::Root, json!({}), 1),
        (Cgroup::Pods, json!({}), 0),
    ] {
        let mut lab = Lab::new(36);
        lab.seconds(3);
        lab.simulation.with(|_, nodes, _| {
            let machine = &mut nodes.get_mut("n1").unwrap().machine;
            let used = machine.memory(&group).unwrap().usage;
            machine.limit_memory(&group, Some(used + (300 << 20)));
        });
        lab.pod("p", json!({"containers": [prints(GROW, json!({"limits": limits}))]}));
        lab.seconds(20);
        let state = of(&lab.status("p"), "containerStatuses", "c")["state"].clone();
        assert_eq!(state["terminated"]["reason"], "OOMKilled");
        assert_eq!(lab.messages("n1", "SystemOOM").len(), reported, "{group:?} {limits}");
    }
}

/// `calculateEmptyDirMemorySize` of empty_dir.go.
#[test]
fn memory_volume_has_the_size_of_the_pod_cgroup() {
    let container = |name: &str, memory: &str, command: Value| {
        json!({
            "name": name, "command": command, "resources": {"limits": {"memory": memory}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        })
    };
    let mut lab = Lab::new(36);
    let uid = lab.pod(
        "p",
        json!({
            "initContainers": [container("i", "300Mi", json!(["true"]))],
            "containers": [container("c", "200Mi", json!(["sleep", "infinity"]))],
            "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
        }),
    );
    lab.seconds(8);
    let size = lab.simulation.nodes["n1"].machine.tmpfs_size(&uid, "v");
    assert_eq!(size, Some(300 << 20));
}

/// `ResourceConfigForPod` of helpers_linux.go: the files of an earlier attempt count.
#[test]
fn pod_cgroup_has_the_limits_of_all_containers() {
    let script = "if [ -f /v/f ]; then exec /agnhost stress --mem-alloc-size 10Mi --mem-alloc-sleep 10ms --mem-total 70Mi; \
                  fi; dd if=/dev/zero of=/v/f bs=1M count=60; exit 1";
    let mut container = prints(script, json!({"limits": {"memory": "100Mi"}}));
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let mut lab = Lab::new(36);
    lab.pod(
        "p",
        json!({
            "restartPolicy": "OnFailure",
            "containers": [container],
            "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
        }),
    );
    lab.seconds(30);
    let status = lab.status("p");
    let last = &of(&status, "containerStatuses", "c")["lastState"]["terminated"];
    assert_eq!(last["reason"], "OOMKilled", "{status}");
}

#[test]
fn pod_reads_its_log_on_node() {
    let mut lab = Lab::new(31);
    let mut container =
        prints("ls /logs; for pod in $(ls /logs); do cat /logs/$pod/c/0.log; done", json!({}));
    container["volumeMounts"] = json!([{"name": "logs", "mountPath": "/logs"}]);
    let volumes = json!([{"name": "logs", "hostPath": {"path": "/var/log/pods"}}]);
    let uid = lab.pod("p", json!({"containers": [container], "volumes": volumes}));
    lab.seconds(4);
    let log = log(&mut lab, "p", "c");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], format!("default_p_{uid}"));
    // The log includes the line as it was when read.
    assert!(lines[1].ends_with(&format!("Z stdout F default_p_{uid}")), "{log}");
}

/// `ResourceConfigForPod`: 1.31 does not know the limit of a pod, and the gate is off through 1.33.
#[test]
fn the_memory_limit_of_a_pod_counts_since_1_34() {
    for (minor, limit) in [(31, None), (32, None), (33, None), (34, Some(64 << 20)), (36, Some(64 << 20))] {
        let mut lab = Lab::new(minor);
        let limits = json!({"limits": {"memory": "64Mi"}});
        let uid = lab.pod("p", json!({"resources": limits, "containers": [{"name": "c"}]}));
        lab.seconds(1);
        let kubelet = lab.kubelet();
        let manifest = &kubelet.pods.workers[&uid].manifest;
        assert_eq!(kubelet.pod_memory_max(manifest), limit, "1.{minor}");
    }
}
