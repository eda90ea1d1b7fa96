//! What a pod's containers find of what the kubelet has set for them.

use super::*;

/// What a container of a pod wrote.
fn said(lab: &mut Lab, pod: &str, container: &str) -> String {
    lab.log(pod, container, "").text
}

fn prints(script: &str, resources: Value) -> Value {
    json!({"name": "c", "command": ["sh", "-c", script], "resources": resources})
}

#[test]
fn a_container_reads_the_score_of_its_class() {
    const SCORE: &str = "cat /proc/self/oom_score_adj /proc/1/oom_score_adj";
    let mut lab = Lab::new(31);
    let all = json!({"memory": "256Mi", "cpu": "100m"});
    for (name, resources, priority, score) in [
        ("guaranteed", json!({"limits": all, "requests": all}), 0, "-997"),
        ("best-effort", json!({}), 0, "1000"),
        // 1000 less 256 MiB of 16 GiB in thousandths.
        ("burstable", json!({"requests": {"memory": "256Mi"}}), 0, "985"),
        ("system-node-critical", json!({}), 2_000_001_000, "-997"),
        // Of the cluster, not of its node.
        ("system-cluster-critical", json!({}), 2_000_000_000, "1000"),
    ] {
        let spec = json!({
            "priority": priority,
            "priorityClassName": name,
            "containers": [prints(SCORE, resources)],
        });
        lab.pod(name, spec);
        lab.seconds(3);
        assert_eq!(said(&mut lab, name, "c"), format!("{score}\n{score}\n"), "{name}");
    }
}

#[test]
fn whole_containers_are_killed_from_1_28_unless_they_are_not_to_be() {
    const GROUP: &str = "cat /sys/fs/cgroup/memory.oom.group";
    for (minor, single, told) in
        [(27, false, "0\n"), (28, false, "1\n"), (31, true, "1\n"), (32, true, "0\n")]
    {
        let mut lab = Lab::new(minor);
        if single {
            lab.world.with(|_, nodes, ctx| {
                let node = nodes.get_mut("n1").unwrap();
                node.kubelet.config.file.insert("singleProcessOOMKill".to_owned(), json!(true));
                node.kubelet.stop();
                node.kubelet.start(&mut node.machine, ctx);
            });
        }
        lab.pod("p", json!({"containers": [prints(GROUP, json!({}))]}));
        lab.seconds(4);
        assert_eq!(said(&mut lab, "p", "c"), told, "1.{minor}");
    }
}

#[test]
fn a_pod_finds_its_log_on_the_node() {
    let mut lab = Lab::new(31);
    let mut container = prints("ls /logs; cat /logs/default_p_*/c/0.log", json!({}));
    container["volumeMounts"] = json!([{"name": "logs", "mountPath": "/logs"}]);
    let volumes = json!([{"name": "logs", "hostPath": {"path": "/var/log/pods"}}]);
    let uid = lab.pod("p", json!({"containers": [container], "volumes": volumes}));
    lab.seconds(4);
    let said = said(&mut lab, "p", "c");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], format!("default_p_{uid}"));
    // The log as it was when it was read: with that line.
    assert!(lines[1].ends_with(&format!("Z stdout F default_p_{uid}")), "{said}");
}
