//! Checks of the steps of a case.

use serde_json::{Map, Value};

use super::checker::Checker;
use crate::action::{Action, ApiRequest, ContainerCommand, NodeChange, Resize};
use crate::case_name::case_name;
use crate::existing_namespace::{EXPIRY_NAME, QUOTA_NAME};
use crate::manifest_types::has_kind;
use crate::object_name::{ObjectKind, ObjectName};
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::step::Step;
use crate::values::Name;
use crate::words::list_names;
use crate::yaml_path;

impl Checker<'_> {
    pub(crate) fn check_steps(&mut self) {
        let mut existing: Vec<&Map<String, Value>> = self.case.objects.iter().collect();
        for (at, step) in self.case.steps.iter().enumerate() {
            if step.action.is_none() && step.when.is_none() && step.wait.is_none() {
                self.report(
                    yaml_path!["do", at],
                    "the step does nothing",
                    "state `when`, `wait` or an action",
                );
            }
            if step.answer.is_some() && !step.action.as_ref().is_some_and(Action::has_answer) {
                let note = "only `create`, `patch`, `resize`, `delete`, `evict` and `exec` have one";
                self.report(yaml_path!["do", at, "answer"], "the step has no answer", note);
            }
            if let Some(object) = step.created_object() {
                existing.push(object);
                self.check_kind(yaml_path!["do", at, "create"], object);
            }
            let Some(action) = &step.action else { continue };
            self.check_action(at, action);
            if let Some(object) = action.object() {
                self.check_reserved(
                    yaml_path!["do", at, action.field()],
                    &object.kind.to_string(),
                    object.name.as_str(),
                );
                self.check_object_reference(yaml_path!["do", at, action.field()], &object, &existing);
            }
        }
        for (at, object) in self.case.objects.iter().enumerate() {
            self.check_kind(yaml_path!["objects", at], object);
        }
        for (at, pod) in self.case.expect.may_be_evicted.iter().enumerate() {
            self.check_pod_reference(yaml_path!["expect", "may-be-evicted", at], pod);
        }
    }

    /// Checks what only one action has.
    fn check_action(&mut self, at: usize, action: &Action) {
        match action {
            Action::Api(ApiRequest::Patch(patch)) => {
                let path = yaml_path!["do", at, "patch", "patch"];
                self.check_finalizers(path, &patch.patch);
                if patch.patch.is_empty() {
                    let note = "such as {spec: {replicas: 3}}";
                    self.report(path, "the patch changes nothing", note);
                }
            }
            Action::Api(ApiRequest::Resize(resize)) => self.check_resize(at, resize),
            Action::Exec(command) => self.check_command(at, command),
            Action::Node(NodeChange::LoadImage(image)) => {
                self.check_image_name(yaml_path!["do", at, "load-image"], image);
            }
            Action::Node(NodeChange::DeleteStaticPod(pod)) => self.check_static_pod_reference(at, pod),
            Action::Api(ApiRequest::Create(_) | ApiRequest::Delete(_) | ApiRequest::Evict(_)) => {}
            // `check_node` checks taints, `check_pods` static pods.
            Action::Node(
                NodeChange::Taint(_)
                | NodeChange::Untaint(_)
                | NodeChange::Drain
                | NodeChange::Uncordon
                | NodeChange::Pause
                | NodeChange::Resume
                | NodeChange::Configure(_)
                | NodeChange::RestartKubelet
                | NodeChange::CreateStaticPod(_),
            )
            | Action::ReadLogs(_) => {}
        }
    }

    /// Checks that a static pod exists when the step at this place deletes it.
    fn check_static_pod_reference(&mut self, at: usize, pod: &Name) {
        let case = self.case;
        let created = case.steps[..at].iter().filter_map(Step::created_static_pod);
        let names: Vec<&str> = case.static_pods.iter().chain(created).filter_map(case_name).collect();
        if names.contains(&pod.as_str()) {
            return;
        }
        let note = did_you_mean(pod.as_str(), names.iter().copied()).unwrap_or_else(|| {
            let known = list_names(names.iter().copied());
            format!("state it in `static-pods`, or create it in an earlier step; known: {known}")
        });
        let path = yaml_path!["do", at, "delete-static-pod"];
        self.report(path, format!("the case has no static pod `{pod}`"), note);
    }

    fn check_command(&mut self, at: usize, command: &ContainerCommand) {
        if command.command.is_empty() {
            let note = "such as [sh, -c, 'cat /proc/meminfo']";
            self.report(yaml_path!["do", at, "exec", "command"], "the command is empty", note);
        }
        let path = yaml_path!["do", at, "exec", "container"];
        self.check_container_reference(path, &command.pod, command.container.as_ref());
    }

    fn check_resize(&mut self, at: usize, resize: &Resize) {
        if resize.requests.is_empty() && resize.limits.is_empty() {
            let note = "state `requests` or `limits`, such as requests: {memory: 64Mi}";
            self.report(yaml_path!["do", at, "resize"], "the resize changes nothing", note);
        }
        let path = yaml_path!["do", at, "resize", "container"];
        self.check_container_reference(path, &resize.pod, resize.container.as_ref());
    }

    fn check_container_reference(&mut self, path: &[PathSegment], pod: &Name, container: Option<&Name>) {
        if let (Some(container), Some(known)) = (container, self.containers_of(pod)) {
            self.check_known("container", path, container, &known, pod);
        }
    }

    /// Checks that an object exists when the step runs: as a pod or an object of the case, or
    /// created by an earlier step.
    fn check_object_reference(
        &mut self,
        path: &[PathSegment],
        object: &ObjectName,
        existing: &[&Map<String, Value>],
    ) {
        let kind = object.kind.to_string();
        let of_kind = existing.iter().filter(|one| has_kind(one, &kind));
        let names: Vec<&str> = of_kind.filter_map(|one| case_name(one)).collect();
        if names.contains(&object.name.as_str()) {
            return;
        }
        if object.kind == ObjectKind::Pod {
            return self.check_pod_reference(path, &object.name);
        }
        let note = did_you_mean(object.name.as_str(), names.iter().copied()).unwrap_or_else(|| {
            format!(
                "state it in `objects`, or create it in an earlier step; known: {}",
                list_names(names.iter().copied())
            )
        });
        self.report(path, format!("the case has no {kind} `{}`", object.name), note);
    }

    fn check_pod_reference(&mut self, path: &[PathSegment], pod: &Name) {
        if self.containers_of(pod).is_none() {
            self.report_unknown_pod(path, pod);
        }
    }

    fn check_kind(&mut self, path: &[PathSegment], object: &Map<String, Value>) {
        for field in ["apiVersion", "kind"] {
            if object.get(field).and_then(Value::as_str).is_none() {
                self.report(path, format!("the object has no `{field}`"), "an object of any kind is allowed");
            }
        }
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        self.check_reserved(path, kind, case_name(object).unwrap_or_default());
    }

    /// Rejects the names of the objects that bound a case on an existing cluster: a case could
    /// change or delete them.
    fn check_reserved(&mut self, path: &[PathSegment], kind: &str, name: &str) {
        if [("ResourceQuota", QUOTA_NAME), ("Job", EXPIRY_NAME)].contains(&(kind, name)) {
            let note = "it has an object of this name in the namespace of the case; choose another one";
            self.report(path, format!("evictlab uses the name `{name}` of a {kind}"), note);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("a step that does nothing", "expect:\n", "do:\n  - {about: nothing}\nexpect:\n"),
            ("a step with no such pod", "expect:\n", "do:\n  - {evict: aloc}\nexpect:\n"),
            (
                "a patch of no object",
                "expect:\n",
                "do:\n  - patch: {kind: Deployment, name: web, patch: {spec: {}}}\nexpect:\n",
            ),
            ("an empty patch", "expect:\n", "do:\n  - patch: {kind: Pod, name: alloc, patch: {}}\nexpect:\n"),
            (
                "a deletion of another kind",
                "expect:\n",
                "objects:\n  - {apiVersion: v1, kind: Service, metadata: {name: web}}\ndo:\n  - delete: {kind: Secret, name: web}\nexpect:\n",
            ),
            ("an answer of a restart", "expect:\n", "do:\n  - {restart-kubelet: true, answer: a}\nexpect:\n"),
            (
                "the quota of evictlab",
                "expect:\n",
                "do:\n  - {create: {apiVersion: v1, kind: ResourceQuota, metadata: {name: evictlab}}, answer: a}\n  - {delete: {kind: ResourceQuota, name: evictlab}}\nexpect:\n",
            ),
            (
                "the expiry of evictlab by a generated name",
                "expect:\n",
                "objects:\n  - {apiVersion: batch/v1, kind: Job, metadata: {generateName: evictlab-expiry-}}\ndo:\n  - {patch: {kind: Job, name: evictlab-expiry, patch: {spec: {suspend: true}}}}\nexpect:\n",
            ),
            (
                "an answer of a loaded image",
                "expect:\n",
                "do:\n  - {load-image: \"stress:1\", answer: a}\nexpect:\n",
            ),
            ("a loaded image without a name", "expect:\n", "do:\n  - {load-image: \"stress 1\"}\nexpect:\n"),
            ("a command in no such pod", "expect:\n", "do:\n  - exec: {pod: aloc, command: [ls]}\nexpect:\n"),
            (
                "a command in no such container",
                "expect:\n",
                "do:\n  - exec: {pod: alloc, container: el2, command: [ls]}\nexpect:\n",
            ),
            ("a resize that changes nothing", "expect:\n", "do:\n  - resize: {pod: alloc}\nexpect:\n"),
            (
                "a resize of no such container",
                "expect:\n",
                "do:\n  - resize: {pod: alloc, container: el2, requests: {memory: 1Mi}}\nexpect:\n",
            ),
            (
                "a deletion of a static pod that is created later",
                "expect:\n",
                "do:\n  - delete-static-pod: web\n  - create-static-pod: {metadata: {name: web}, spec: {containers: [{name: a, image: 'a:1'}]}}\nexpect:\n",
            ),
            (
                "a deletion of a pod as a static one, whose answer is kept",
                "expect:\n",
                "static-pods:\n  - {metadata: {name: aloc}, spec: {containers: [{name: a, image: 'a:1'}]}}\ndo:\n  - {delete-static-pod: alloc, answer: a}\nexpect:\n",
            ),
            ("an empty command", "expect:\n", "do:\n  - exec: {pod: alloc, command: []}\nexpect:\n"),
        ]));
    }
}
