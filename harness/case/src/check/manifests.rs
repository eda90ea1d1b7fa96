//! Checks of manifests against the types of the Kubernetes API.

use evictlab_api_types::{ApiType, Difference};
use evictlab_rules::quantity::Quantity;
use serde_json::{Map, Value};

use super::checker::{Checker, join};
use crate::case_name::case_name;
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::serde_words::api_error;
use crate::yaml_path;

/// Fields whose values are maps of quantities.
const RESOURCE_LISTS: [&str; 5] = ["requests", "limits", "overhead", "hard", "capacity"];

/// Fields that cases use, for suggestions: those of objects, pods, containers, volumes and probes.
const COMMON_FIELDS: [&str; 66] = [
    "activeDeadlineSeconds",
    "affinity",
    "annotations",
    "apiVersion",
    "args",
    "automountServiceAccountToken",
    "command",
    "completions",
    "containerPort",
    "containers",
    "emptyDir",
    "env",
    "ephemeral-storage",
    "exec",
    "failureThreshold",
    "finalizers",
    "generateName",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPath",
    "image",
    "imagePullPolicy",
    "initContainers",
    "initialDelaySeconds",
    "kind",
    "labels",
    "lifecycle",
    "limits",
    "livenessProbe",
    "maxUnavailable",
    "medium",
    "metadata",
    "minAvailable",
    "mountPath",
    "name",
    "namespace",
    "nodeName",
    "nodeSelector",
    "parallelism",
    "periodSeconds",
    "ports",
    "postStart",
    "preStop",
    "preemptionPolicy",
    "priorityClassName",
    "readOnly",
    "readinessProbe",
    "replicas",
    "requests",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "securityContext",
    "selector",
    "sizeLimit",
    "sleep",
    "spec",
    "startupProbe",
    "template",
    "terminationGracePeriodSeconds",
    "terminationMessagePolicy",
    "tolerations",
    "volumeMounts",
    "volumes",
    "workingDir",
];

impl Checker<'_> {
    /// Checks fields, quantities and images of all manifests.
    pub(crate) fn check_manifests(&mut self) {
        let case = self.case;
        for (list, pods) in [("pods", &case.pods), ("static-pods", &case.static_pods)] {
            for (at, pod) in pods.iter().enumerate() {
                self.check_manifest(yaml_path![list, at], pod, Some(ApiType::Pod));
            }
        }
        for (at, object) in case.objects.iter().enumerate() {
            self.check_object(yaml_path!["objects", at], object);
        }
        for (at, step) in case.steps.iter().enumerate() {
            if let Some(object) = step.created_object() {
                self.check_object(yaml_path!["do", at, "create"], object);
            }
            if let Some(pod) = step.created_static_pod() {
                self.check_manifest(yaml_path!["do", at, "create-static-pod"], pod, Some(ApiType::Pod));
            }
        }
        for (at, ephemeral) in case.ephemeral_containers.iter().enumerate() {
            let path = yaml_path!["ephemeral-containers", at, "container"];
            self.check_manifest(path, &ephemeral.container, Some(ApiType::EphemeralContainer));
            self.check_image(path, ephemeral.container.get("image"));
        }
    }

    /// Rejects finalizers in the metadata of an object, of its templates, or of a patch: no
    /// controller removes them, so that neither the object nor its namespace could be deleted.
    pub(crate) fn check_finalizers(&mut self, path: &[PathSegment], fields: &Map<String, Value>) {
        for (name, value) in fields {
            let path = join(path, yaml_path![name.as_str()]);
            let finalizers = value.get("finalizers").filter(|_| name == "metadata").and_then(Value::as_array);
            if finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
                let note = "nothing removes them: the namespace of the case could not be deleted";
                self.report(&join(&path, yaml_path!["finalizers"]), "a case must not set finalizers", note);
            }
            match value {
                Value::Object(fields) => self.check_finalizers(&path, fields),
                Value::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        if let Value::Object(fields) = item {
                            self.check_finalizers(&join(&path, yaml_path![at]), fields);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn check_object(&mut self, path: &[PathSegment], object: &Map<String, Value>) {
        let kind = object.get("kind").and_then(Value::as_str);
        if kind == Some("CronJob") {
            let message = "evictlab does not place the pods of a CronJob";
            self.report(&join(path, yaml_path!["kind"]), message, "use a Job");
        }
        self.check_manifest(path, object, kind.and_then(ApiType::of_kind));
        if let Some(kind) = kind.filter(|kind| ApiType::of_kind(kind).is_none())
            && let Some(note) = did_you_mean(kind, ApiType::OBJECTS.map(|(kind, _)| kind))
        {
            self.report(&join(path, yaml_path!["kind"]), format!("unknown kind `{kind}`"), note);
        }
        if kind != Some("Pod") && case_name(object).is_none() {
            self.report(path, "the object has no `metadata.name`", "");
        }
        let at = |pointer: &[&str]| {
            pointer.iter().try_fold(object.get("spec")?, |value, field| value.get(field))?.as_object()
        };
        let labels = at(&["template", "metadata", "labels"]);
        for (key, value) in at(&["selector", "matchLabels"]).into_iter().flatten() {
            if labels.and_then(|labels| labels.get(key)) != Some(value) && at(&["template"]).is_some() {
                let path = join(path, yaml_path!["spec", "selector", "matchLabels", key.as_str()]);
                self.report(&path, format!("the labels of the template do not have `{key}`"), "");
            }
        }
    }

    fn check_manifest(
        &mut self,
        path: &[PathSegment],
        manifest: &Map<String, Value>,
        api_type: Option<ApiType>,
    ) {
        self.check_finalizers(path, manifest);
        let mut manifest = manifest.clone();
        // Checked where the kind is known.
        manifest.shift_remove("kind");
        let mut manifest = Value::Object(manifest);
        self.check_quantities(path, &mut manifest);
        self.check_pod_specs(path, &manifest);
        // Only the API server can check kinds that are not known here.
        let Some(api_type) = api_type else { return };
        for mismatch in api_type.mismatches(&manifest) {
            let at = join(path, &mismatch.path);
            match (mismatch.difference, at.split_last()) {
                (Difference::UnknownField, Some((PathSegment::Key(field), parent))) => {
                    let note = did_you_mean(field, COMMON_FIELDS).unwrap_or_default();
                    self.report_word(parent, field, format!("unknown field `{field}`"), note);
                }
                (Difference::UnknownField, _) => self.report(&at, "unknown item", ""),
                (Difference::WrongType(error), last) => {
                    let field = match last {
                        Some((PathSegment::Key(field), _)) => field.as_str(),
                        _ => "",
                    };
                    let (message, note) = api_error(field, &error);
                    self.report(&at, message, note);
                }
            }
        }
    }

    /// Checks the quantities of resource lists, and writes numbers as texts, which the types need.
    fn check_quantities(&mut self, path: &[PathSegment], value: &mut Value) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.check_quantities(&join(path, yaml_path![at]), item);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = join(path, yaml_path![name.as_str()]);
                    match value {
                        Value::Object(amounts) if RESOURCE_LISTS.contains(&name.as_str()) => {
                            for (resource, amount) in amounts {
                                self.check_quantity(&join(&path, yaml_path![resource.as_str()]), amount);
                            }
                        }
                        value if name == "sizeLimit" => self.check_quantity(&path, value),
                        value => self.check_quantities(&path, value),
                    }
                }
            }
            _ => {}
        }
    }

    fn check_quantity(&mut self, path: &[PathSegment], amount: &mut Value) {
        let text = match &*amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return self.report(path, "a quantity must be a text or a number", "such as 200Mi"),
        };
        if text.contains("$(") {
            let note =
                "variables are replaced in `command`, `args` and `env` only; `pressure.pod` has `requests`";
            self.report(path, format!("invalid quantity {text:?}"), note);
        } else if let Err(error) = text.parse::<Quantity>() {
            self.report(path, error.to_string(), "");
        }
        *amount = Value::String(text);
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("unknown field of a container", "args: [stress", "arguments: [stress"),
            ("a field of a container that is misspelt", "image: agnhost:2.52", "imge: agnhost:2.52"),
            ("unknown field of a pod", "      volumes:\n", "      restartpolicy: Never\n      volumes:\n"),
            ("a field of a wrong type", "{name: data, emptyDir: {}}", "{name: data, emptyDir: disk}"),
            (
                "a text as a number",
                "          args: [stress",
                "          ports: [{containerPort: \"80\"}]\n          args: [stress",
            ),
            (
                "a text as a list",
                "          args: [stress",
                "          command: pause\n          args: [stress",
            ),
            (
                "a variable as a quantity",
                "          args: [stress",
                "          resources: {requests: {memory: $(TOTAL)}}\n          args: [stress",
            ),
            (
                "a bad quantity",
                "          args: [stress",
                "          resources: {limits: {memory: 20MB}}\n          args: [stress",
            ),
            ("a bad size limit", "emptyDir: {}", "emptyDir: {sizeLimit: much}"),
            (
                "unknown field of a template",
                "expect:\n",
                "objects:\n  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {contaners: []}}}}\nexpect:\n",
            ),
            (
                "an unknown kind without a name",
                "expect:\n",
                "objects:\n  - {apiVersion: apps/v1, kind: Deploymnt}\nexpect:\n",
            ),
            (
                "labels of a template",
                "expect:\n",
                "objects:\n  - {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {spec: {containers: []}}}}\nexpect:\n",
            ),
            ("a finalizer", "{name: alloc}", "{name: alloc, finalizers: [example.com/keep]}"),
            (
                "a finalizer in a template and in a patch",
                "expect:\n",
                "objects:\n  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {finalizers: [example.com/keep]}, spec: {containers: []}}}}\ndo:\n  - {patch: {kind: Deployment, name: a, patch: {metadata: {finalizers: [example.com/keep]}}}}\nexpect:\n",
            ),
        ]));
    }
}
