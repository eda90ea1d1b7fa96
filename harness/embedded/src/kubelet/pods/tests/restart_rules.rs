//! Restart policies of containers (`ContainerRestartRules`).

use super::*;

/// Returns the restarts of a container and the phase of its pod, some seconds after an exit.
fn after_exit(minor: u32, pod_policy: &str, container: Value, code: i32) -> (u64, String) {
    let mut lab = Lab::new(minor);
    let mut spec = json!({"restartPolicy": pod_policy, "containers": [{"name": "c"}]});
    for (field, value) in container.as_object().unwrap() {
        spec["containers"][0][field] = value.clone();
    }
    let uid = lab.pod("p", spec);
    lab.seconds(4);
    lab.exit(&uid, "c", code);
    lab.seconds(5);
    let status = lab.status("p");
    let restarts = of(&status, "containerStatuses", "c")["restartCount"].as_u64().unwrap();
    (restarts, status["phase"].as_str().unwrap().to_owned())
}

#[test]
fn containers_have_their_own_restart_policy_since_1_35() {
    let policy = |policy: &str| json!({"restartPolicy": policy});
    let on = |operator: &str, code: i32| {
        let exit_codes = json!({"operator": operator, "values": [code]});
        let rule = json!({"action": "Restart", "exitCodes": exit_codes});
        json!({"restartPolicy": "Never", "restartPolicyRules": [rule]})
    };
    for (minor, of_pod, container, code, restarts, phase) in [
        (36, "Never", policy("OnFailure"), 1, 1, "Running"),
        (36, "Never", policy("OnFailure"), 0, 0, "Succeeded"),
        (36, "Never", policy("Always"), 0, 1, "Running"),
        (36, "Always", policy("Never"), 1, 0, "Failed"),
        (36, "OnFailure", policy("Never"), 0, 0, "Succeeded"),
        (36, "Always", on("In", 42), 42, 1, "Running"),
        (36, "Always", on("In", 42), 1, 0, "Failed"),
        (36, "Always", on("NotIn", 42), 1, 1, "Running"),
        (34, "Never", policy("OnFailure"), 1, 0, "Failed"),
        (35, "Never", policy("OnFailure"), 1, 1, "Running"),
    ] {
        let seen = after_exit(minor, of_pod, container.clone(), code);
        assert_eq!(seen, (restarts, phase.to_owned()), "1.{minor} {of_pod} {container} {code}");
    }
}

#[test]
fn init_containers_have_their_own_restart_policy() {
    for (of_pod, own, restarts, phase) in
        [("Never", "OnFailure", 1, "Pending"), ("Always", "Never", 0, "Failed")]
    {
        let mut lab = Lab::new(36);
        let uid = lab.pod(
            "p",
            json!({
                "restartPolicy": of_pod,
                "initContainers": [{"name": "i", "restartPolicy": own}],
                "containers": [{"name": "c"}],
            }),
        );
        lab.seconds(4);
        lab.exit(&uid, "i", 1);
        lab.seconds(5);
        let status = lab.status("p");
        assert_eq!(status["phase"], phase, "{of_pod} {own}");
        assert_eq!(of(&status, "initContainerStatuses", "i")["restartCount"], restarts);
    }
}
