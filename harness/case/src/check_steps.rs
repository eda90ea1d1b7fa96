//! Checks of the steps, node changes and assertions of a case.

use evictlab_rules::quantity::GIB;
use serde_json::{Map, Value};

use crate::action::{Action, ApiRequest, ContainerCommand, NodeChange, Resize, Taint};
use crate::assertion::Assertion;
use crate::checks::Checker;
use crate::located_pod_specs::case_name;
use crate::node_setup::FileSystems;
use crate::object_name::{ObjectKind, ObjectName};
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::values::Name;
use crate::words::list_names;
use crate::yaml_path;

/// Prefix of the labels, annotations and taints that evictlab adds to a node.
pub const LABEL_PREFIX: &str = "evictlab.dev/";

/// Least memory of a node, in bytes.
const LEAST_NODE_MEMORY: i64 = 64 << 20;

/// Sizes of an unused image, in bytes.
const UNUSED_IMAGE_SIZE: std::ops::RangeInclusive<i64> = 1 << 20..=2 << 30;

/// Memory in huge pages of 2Mi, in bytes.
const HUGE_PAGES: std::ops::RangeInclusive<i64> = HUGE_PAGE..=GIB as i64;
const HUGE_PAGE: i64 = 2 << 20;

/// Size of an imagefs in bytes: it has the images of a kind node and room for a case, and the
/// metadata of a larger one would take space of the host.
const IMAGEFS_SIZE: std::ops::RangeInclusive<i64> = 2 * GIB as i64..=64 * GIB as i64;

/// Inodes of an imagefs: the files of the images of a kind node, and at most as many as 2Gi can
/// have.
const IMAGEFS_INODES: std::ops::RangeInclusive<u64> = 32 << 10..=512 << 10;

impl Checker<'_> {
    /// Checks that additions to a node have the domain of the harness, so that they can be found
    /// and removed.
    pub(crate) fn check_node(&mut self) {
        for name in self.case.node.capacity.keys() {
            self.check_domain(yaml_path!["node", "capacity", name.as_str()], name);
        }
        if let Some(memory) = &self.case.node.memory
            && memory.quantity().value() < LEAST_NODE_MEMORY
        {
            self.report(
                yaml_path!["node", "memory"],
                format!("a node cannot run with {memory} of memory"),
                "state at least 64Mi",
            );
        }
        if let Some(file_systems) = &self.case.node.file_systems {
            self.check_imagefs(file_systems);
        }
        if let Some(size) = self.case.node.huge_pages.as_ref().map(|size| size.quantity().value())
            && !(HUGE_PAGES.contains(&size) && size % HUGE_PAGE == 0)
        {
            self.report(
                yaml_path!["node", "huge-pages"],
                "huge pages of 2Mi cannot reserve this size".to_owned(),
                "state 2Mi to 1Gi, in multiples of 2Mi",
            );
        }
        if let Some(size) = &self.case.node.unused_image
            && !UNUSED_IMAGE_SIZE.contains(&size.quantity().value())
        {
            self.report(
                yaml_path!["node", "unused-image"],
                format!("an unused image cannot have a size of {size}"),
                "state 1Mi to 2Gi",
            );
        }
        for (at, step) in self.case.steps.iter().enumerate() {
            match step.node_change() {
                Some(NodeChange::Taint(taint)) => self.check_taint(at, taint),
                Some(NodeChange::Untaint(key)) => self.check_domain(yaml_path!["do", at, "untaint"], key),
                _ => {}
            }
        }
    }

    fn check_imagefs(&mut self, stated: &FileSystems) {
        if !IMAGEFS_SIZE.contains(&stated.imagefs.quantity().value()) {
            self.report(
                yaml_path!["node", "file-systems", "imagefs"],
                format!("an imagefs cannot have a size of {}", stated.imagefs),
                "state 2Gi to 64Gi: the images of a kind node take about 1Gi",
            );
        }
        if let Some(inodes) = stated.imagefs_inodes
            && !IMAGEFS_INODES.contains(&inodes)
        {
            self.report(
                yaml_path!["node", "file-systems", "imagefs-inodes"],
                format!("an imagefs cannot have {inodes} inodes"),
                "state 32768 to 524288: the images of a kind node take up to 20,000",
            );
        }
    }

    fn check_taint(&mut self, at: usize, taint: &Taint) {
        self.check_domain(yaml_path!["do", at, "taint", "key"], &taint.key);
        if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&taint.effect.as_str()) {
            self.report(
                yaml_path!["do", at, "taint", "effect"],
                format!("unknown taint effect {:?}", taint.effect),
                "valid: NoSchedule, PreferNoSchedule, NoExecute",
            );
        }
    }

    fn check_domain(&mut self, path: &[PathSegment], name: &str) {
        if !name.starts_with(LABEL_PREFIX) {
            let note = format!("it must begin with {LABEL_PREFIX}");
            self.report(
                path,
                format!("`{name}` is outside of the domain of evictlab and would not be removed"),
                note,
            );
        }
    }

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
            if step.answer.is_some() && !matches!(step.action, Some(Action::Api(_) | Action::Exec(_))) {
                let note = "only `create`, `patch`, `resize`, `delete`, `evict` and `exec` have one";
                self.report(yaml_path!["do", at, "answer"], "the step has no answer", note);
            }
            if let Some(object) = step.created_object() {
                existing.push(object);
                self.check_kind(yaml_path!["do", at, "create"], object);
            }
            if let Some(Action::Api(ApiRequest::Patch(patch))) = &step.action {
                let path = yaml_path!["do", at, "patch", "patch"];
                self.check_finalizers(path, &patch.patch);
                if patch.patch.is_empty() {
                    let note = "such as {spec: {replicas: 3}}";
                    self.report(path, "the patch changes nothing", note);
                }
            }
            match &step.action {
                Some(Action::Exec(command)) => self.check_command(at, command),
                Some(Action::Api(ApiRequest::Resize(resize))) => self.check_resize(at, resize),
                Some(Action::Node(NodeChange::LoadImage(image))) => {
                    self.check_image_name(yaml_path!["do", at, "load-image"], image);
                }
                _ => {}
            }
            let Some(action) = &step.action else { continue };
            if let Some(object) = action.object() {
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
        let kind = object.kind.as_str();
        let of_kind = existing.iter().filter(|one| one.get("kind").is_some_and(|other| other == kind));
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
    }

    pub(crate) fn check_assertions(&mut self) {
        let lists: Vec<(Vec<PathSegment>, &[Assertion])> =
            std::iter::once((yaml_path!["expect", "that"].to_vec(), &self.case.expect.that[..]))
                .chain(
                    self.case
                        .known_bugs
                        .iter()
                        .enumerate()
                        .map(|(at, bug)| (yaml_path!["known-bugs", at, "that"].to_vec(), &bug.that[..])),
                )
                .collect();
        for (path, assertions) in lists {
            for (at, assertion) in assertions.iter().enumerate() {
                let is_same = |other: &&Assertion| {
                    other.what == assertion.what
                        && other.kubelet == assertion.kubelet
                        && other.cgroup == assertion.cgroup
                };
                if assertions[..at].iter().any(|other| is_same(&other)) {
                    let path = [&path[..], yaml_path![at, "what"]].concat();
                    self.report(&path, format!("duplicate assertion {:?}", assertion.what), "");
                }
                if assertion.is.is_some() && assertion.is_not.is_some() {
                    let path = [&path[..], yaml_path![at, "is-not"]].concat();
                    self.report(&path, "the assertion has both `is` and `is-not`", "`is` alone suffices");
                }
            }
        }
        if self.case.expect.rate.is_none() && self.case.known_bugs.iter().any(|bug| bug.sometimes) {
            self.report(yaml_path!["known-bugs"], "`sometimes` needs `expect.rate`", "");
        }
        let Some(rate) = &self.case.expect.rate else { return };
        if rate.runs == 0 {
            self.report(yaml_path!["expect", "rate", "runs"], "`runs` must be at least 1", "");
        }
        if rate.at_least.is_some_and(|share| share <= 0.0 || share > 1.0 || share.is_nan()) {
            let note = "without it, every observation must be `true`";
            let message = "`at-least` must be a share above 0, and at most 1";
            self.report(yaml_path!["expect", "rate", "at-least"], message, note);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            (
                "an imagefs without room for images",
                "expect:\n",
                "node: {file-systems: {imagefs: 512Mi}}\nexpect:\n",
            ),
            (
                "an imagefs without inodes for images",
                "expect:\n",
                "node: {file-systems: {imagefs: 2Gi, imagefs-inodes: 1000}}\nexpect:\n",
            ),
            ("a node without memory", "expect:\n", "node: {memory: 5}\nexpect:\n"),
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
            ("an empty command", "expect:\n", "do:\n  - exec: {pod: alloc, command: []}\nexpect:\n"),
            ("a rate that cannot fail", "expect:\n", "expect:\n  rate: {what: x, of: 'true', at-least: 0}\n"),
            ("a taint outside of the domain", "expect:\n", "do:\n  - {untaint: example.com/x}\nexpect:\n"),
            (
                "duplicate assertion",
                "expect:\n",
                "expect:\n  that: [{what: x, value: t, at-least: 1}, {what: x, value: t, at-most: 2}]\n",
            ),
            (
                "an assertion of a value and its opposite",
                "expect:\n",
                "expect:\n  that: [{what: x, value: t, is: 1, is-not: 2}]\n",
            ),
            ("sometimes without a rate", "    message: {containers: {el1: {}}}\n", "    sometimes: true\n"),
        ]));
    }
}
