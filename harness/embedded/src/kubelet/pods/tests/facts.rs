//! Environment, mounts and OOM scores of containers.

use super::*;

/// Returns the log of a container.
fn log(lab: &mut Lab, pod: &str, container: &str) -> String {
    lab.log(pod, container, PodLogOptions::default()).text
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
