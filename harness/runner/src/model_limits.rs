//! Parts of a case that the embedded cluster does not run.

use evictlab_case::positions::PathSegment;
use evictlab_case::{LoadedCase, Problem, yaml_path};
use evictlab_embedded::{ContainerSpec, Kind, unsupported_command};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Returns the parts of a case that the model does not run: kinds of objects that it does not have,
/// images and commands that it does not know, hooks and restart rules that it does not have. Empty
/// for a case that states `on-a-model`.
///
/// Commands within scripts are not checked.
pub fn model_limits(case: &LoadedCase) -> Vec<Problem> {
    if case.case.model_skip_reason.is_some() {
        return Vec::new();
    }
    let stated = &case.case;
    let mut limits = Limits { case, problems: Vec::new() };
    for (list, pods) in [("pods", &stated.pods), ("static-pods", &stated.static_pods)] {
        for (at, pod) in pods.iter().enumerate() {
            limits.add_containers(yaml_path![list, at], &Value::Object(pod.clone()));
        }
    }
    for (at, object) in stated.objects.iter().enumerate() {
        limits.add_object(yaml_path!["objects", at], object);
    }
    for (at, step) in stated.steps.iter().enumerate() {
        if let Some(object) = step.created_object() {
            limits.add_object(yaml_path!["do", at, "create"], object);
        }
        if let Some(pod) = step.created_static_pod() {
            limits.add_containers(yaml_path!["do", at, "create-static-pod"], &Value::Object(pod.clone()));
        }
        if let Some(exec) = step.exec() {
            let command = ContainerSpec { command: exec.command.clone(), ..exec_spec() };
            if let Some(command) = unsupported_command(&command) {
                limits.add(yaml_path!["do", at, "exec"], format!("the model does not run {command}"));
            }
        }
    }
    limits.problems
}

struct Limits<'a> {
    case: &'a LoadedCase,
    problems: Vec<Problem>,
}

impl Limits<'_> {
    fn add(&mut self, path: &[PathSegment], message: String) {
        let note = "the case is skipped on the model; state `on-a-model` with the reason";
        self.problems.push(Problem { message, spans: vec![self.case.span(path, note)] });
    }

    fn add_object(&mut self, path: &[PathSegment], object: &Map<String, Value>) {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !Kind::ALL.iter().any(|known| format!("{known:?}") == kind) {
            self.add(&[path, yaml_path!["kind"]].concat(), format!("the model has no {kind}"));
        }
        self.add_containers(path, &Value::Object(object.clone()));
    }

    /// Checks the containers at any depth of a manifest.
    fn add_containers(&mut self, path: &[PathSegment], value: &Value) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.add_containers(&[path, yaml_path![at]].concat(), item);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = [path, yaml_path![name.as_str()]].concat();
                    if !["containers", "initContainers"].contains(&name.as_str()) {
                        self.add_containers(&path, value);
                        continue;
                    }
                    for (at, container) in value.as_array().into_iter().flatten().enumerate() {
                        self.add_container(&[&path[..], yaml_path![at]].concat(), container);
                    }
                }
            }
            _ => {}
        }
    }

    fn add_container(&mut self, path: &[PathSegment], container: &Value) {
        // `lint` reports fields of wrong types.
        let container = Container::deserialize(container).unwrap_or_default();
        if let Some(command) = unsupported_command(&container.spec()) {
            self.add(path, format!("the model does not run {command}"));
        }
        self.add_hooks(path, container.lifecycle.unwrap_or_default());
        for (at, rule) in container.restart_policy_rules.iter().flatten().enumerate() {
            if rule.action.as_deref() == Some("RestartAllContainers") {
                let path = [path, yaml_path!["restartPolicyRules", at, "action"]].concat();
                self.add(&path, "the model does not restart all containers of a pod".to_owned());
            }
        }
    }

    fn add_hooks(&mut self, path: &[PathSegment], lifecycle: Lifecycle) {
        let path = [path, yaml_path!["lifecycle"]].concat();
        if lifecycle.post_start.is_some() {
            let path = [&path[..], yaml_path!["postStart"]].concat();
            self.add(&path, "the model does not run `postStart` hooks".to_owned());
        }
        let hook = lifecycle.pre_stop.unwrap_or_default();
        let path = [&path[..], yaml_path!["preStop"]].concat();
        let requests = [("httpGet", hook.http_get), ("tcpSocket", hook.tcp_socket)];
        for kind in requests.into_iter().filter_map(|(kind, request)| request.map(|_| kind)) {
            let path = [&path[..], yaml_path![kind]].concat();
            self.add(&path, format!("the model does not run hooks with `{kind}`"));
        }
        let exec = hook.exec.map(|exec| exec.command.unwrap_or_default());
        let spec = exec.map(|command| ContainerSpec { command, ..exec_spec() });
        if let Some(command) = spec.as_ref().and_then(unsupported_command) {
            let path = [&path[..], yaml_path!["exec"]].concat();
            self.add(&path, format!("the model does not run {command}"));
        }
    }
}

/// Returns a container in which every command of the model can run.
fn exec_spec() -> ContainerSpec {
    ContainerSpec { image: "agnhost:2.52".to_owned(), ..ContainerSpec::default() }
}

/// Fields of a container that the model may not run.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    image: Option<String>,
    command: Option<Vec<String>>,
    args: Option<Vec<String>>,
    lifecycle: Option<Lifecycle>,
    restart_policy_rules: Option<Vec<RestartRule>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lifecycle {
    post_start: Option<IgnoredAny>,
    pre_stop: Option<Hook>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hook {
    exec: Option<ExecAction>,
    http_get: Option<IgnoredAny>,
    tcp_socket: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ExecAction {
    command: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RestartRule {
    action: Option<String>,
}

impl Container {
    fn spec(&self) -> ContainerSpec {
        // `stress:1` is short for evictlab's image, as in images.lock.
        let image = match self.image.as_deref().unwrap_or_default() {
            image if image.starts_with("stress:") => format!("localhost/evictlab/{image}"),
            image => image.to_owned(),
        };
        ContainerSpec {
            image,
            command: self.command.clone().unwrap_or_default(),
            args: self.args.clone().unwrap_or_default(),
            ..ContainerSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(manifests: &str) -> Vec<String> {
        let text = format!(
            "name: a\nabout: b\nexpect: {{that: [{{what: c, value: size(events) >= 0}}]}}\n{manifests}\n"
        );
        let case = evictlab_case::parse("s", "s/a.yaml", "a.yaml", text.as_bytes()).unwrap();
        model_limits(&case).into_iter().map(|problem| problem.to_string()).collect()
    }

    fn pod(container: &str) -> String {
        format!("pods: [{{metadata: {{name: p}}, spec: {{containers: [{{name: c, {container}}}]}}}}]")
    }

    #[test]
    fn reports_kinds_images_and_commands_that_the_model_lacks() {
        for supported in [
            "image: agnhost:2.52, args: [pause]",
            "image: agnhost:2.52, args: [stress, --mem-total, 1Gi]",
            "image: 'stress:1'",
            "image: nginx, command: [sh, -c, 'dd if=/dev/zero of=/f bs=1M count=1; sleep 1']",
        ] {
            assert_eq!(limits(&pod(supported)), [""; 0], "{supported}");
        }
        for (unsupported, part) in [
            ("image: 'nginx:1'", "the model does not run the image \"nginx:1\""),
            ("image: agnhost:2.52, args: [netexec]", "the model does not run \"/agnhost netexec\""),
            ("image: agnhost:2.52, command: [python3, -c, '1']", "does not run \"python3 -c 1\""),
            ("image: agnhost:2.52, command: [sh, -c, 'case a in a) true;; esac']", "does not run \"sh -c"),
        ] {
            let found = limits(&pod(unsupported));
            assert!(found.len() == 1 && found[0].contains(part), "{unsupported}: {found:?}");
            assert!(found[0].contains("a.yaml:4"), "{found:?}");
        }
        let static_pod = "do: [{create-static-pod: {metadata: {name: s}, spec: {containers: [{name: c, image: 'nginx:1'}]}}}]";
        assert!(limits(static_pod)[0].contains("the model does not run the image"));
        let exec = |script: &str| {
            let step = format!("do: [{{exec: {{pod: p, command: [sh, -c, '{script}']}}}}]");
            limits(&format!("{}\n{step}", pod("image: agnhost:2.52, args: [pause]")))
        };
        assert_eq!(exec("ls /data"), [""; 0]);
        let found = exec("for file in /data/*; do echo $file; done");
        assert!(
            found.len() == 1 && found[0].contains("the model does not run \"sh -c for file"),
            "{found:?}"
        );
        let daemon_set = "objects: [{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: {containers: [{name: c, image: agnhost:2.52}]}}}}]";
        assert!(
            limits(daemon_set)[0].starts_with("the model has no DaemonSet\n"),
            "{:?}",
            limits(daemon_set)
        );
        let stated = format!("{daemon_set}\non-a-model: It has no DaemonSets.");
        assert_eq!(limits(&stated), [""; 0]);
    }

    #[test]
    fn reports_hooks_and_restart_rules_that_the_model_lacks() {
        let with_hook = |hook: &str| {
            limits(&pod(&format!("image: agnhost:2.52, args: [pause], lifecycle: {{preStop: {hook}}}")))
        };
        assert_eq!(with_hook("{exec: {command: [sh, -c, 'sleep 8; exit 1']}}"), [""; 0]);
        assert_eq!(with_hook("{sleep: {seconds: 3}}"), [""; 0]);
        for (hook, part) in [
            ("{exec: {command: [python3]}}", "the model does not run \"python3\""),
            ("{httpGet: {port: 80}}", "the model does not run hooks with `httpGet`"),
            ("{tcpSocket: {port: 80}}", "the model does not run hooks with `tcpSocket`"),
        ] {
            let found = with_hook(hook);
            assert!(found.len() == 1 && found[0].contains(part), "{hook}: {found:?}");
        }
        let found =
            limits(&pod("image: agnhost:2.52, args: [pause], lifecycle: {postStart: {sleep: {seconds: 3}}}"));
        assert!(found.len() == 1 && found[0].starts_with("the model does not run `postStart` hooks"));
        let rule = "image: agnhost:2.52, args: [pause], restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]";
        assert!(limits(&pod(rule))[0].starts_with("the model does not restart all containers"));
    }
}
