//! Checks of the names that expressions read.

use std::collections::BTreeSet;

use evictlab_api_types::ApiType;
use serde_json::{Map, Value};

use super::checker::Checker;
use crate::case_name::case_name;
use crate::expression::{Expression, KeysRead, ObjectTypes, Variable};
use crate::kubelet_metrics::{UnknownMetric, unknown_metric};
use crate::manifest_types::has_kind;
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::words::list_names;

/// Variables that are maps by the name of a pod.
const BY_POD: [Variable; 6] = [
    Variable::Pods,
    Variable::Created,
    Variable::History,
    Variable::Logs,
    Variable::PodStats,
    Variable::Stats,
];

/// Fields whose expressions are conditions.
const CONDITIONS: [&str; 3] = ["until", "trigger", "when"];

impl Checker<'_> {
    /// Checks that expressions can be compiled, and that the answers, pods and objects that they
    /// name exist. A misspelt name would make a condition never hold, and an assertion fail on
    /// every kubelet.
    pub(crate) fn check_expressions(&mut self) {
        let case = self.case;
        let answers: BTreeSet<&str> =
            case.steps.iter().filter_map(|step| step.answer.as_ref()).map(|name| name.as_str()).collect();
        let manifests: Vec<&Map<String, Value>> = case.objects.iter().chain(case.created_objects()).collect();
        let objects: BTreeSet<&str> = manifests.iter().filter_map(|object| case_name(object)).collect();
        let of_objects = manifests.iter().filter(|object| has_kind(object, "Pod"));
        let pods: BTreeSet<&str> = case
            .pods
            .iter()
            .chain(case.all_static_pods())
            .chain(of_objects.copied())
            .filter_map(case_name)
            .collect();
        // Pods of a StatefulSet, such as `web-0`, are valid names, but are not in the manifests.
        let has_stateful_set = manifests.iter().any(|object| has_kind(object, "StatefulSet"));
        let types: ObjectTypes<'_> = manifests
            .iter()
            .filter_map(|object| Some((case_name(object)?, ApiType::of_kind(object.get("kind")?.as_str()?)?)))
            .collect();
        for (path, expression) in case.located_expressions() {
            if let Err(error) = expression.check() {
                self.report(&path, error.to_string(), "");
                continue;
            }
            self.check_condition(&path, expression);
            self.check_fields(&path, expression, &types);
            self.check_metrics(&path, expression);
            self.check_keys(&path, expression, Variable::Answers, "answer", &answers);
            self.check_keys(&path, expression, Variable::Objects, "object", &objects);
            for variable in BY_POD.into_iter().filter(|_| !has_stateful_set) {
                self.check_keys(&path, expression, variable, "pod", &pods);
            }
        }
    }

    /// Checks that the value of a condition can be a boolean.
    fn check_condition(&mut self, path: &[PathSegment], expression: &Expression) {
        let Some(PathSegment::Key(field)) = path.last() else { return };
        if CONDITIONS.contains(&field.as_str()) && expression.is_never_boolean() {
            let message = format!("`{field}` never holds: its value is neither `true` nor `false`");
            self.report(path, message, "compare the value, such as `t > 5`");
        }
    }

    fn check_fields(&mut self, path: &[PathSegment], expression: &Expression, objects: &ObjectTypes<'_>) {
        for field in expression.unknown_fields(objects) {
            let all = || format!("fields: {}", field.valid_fields.join(", "));
            let note = did_you_mean(&field.name, field.valid_fields.iter().copied()).unwrap_or_else(all);
            self.report_word(
                path,
                &field.name,
                format!("`{}` has no field `{}`", field.object, field.name),
                note,
            );
        }
    }

    fn check_metrics(&mut self, path: &[PathSegment], expression: &Expression) {
        let KeysRead::Keys(read) = expression.keys_read(Variable::Metrics) else { return };
        for name in &read {
            if let Some(UnknownMetric { nearest }) = unknown_metric(name) {
                let note = nearest.map_or_else(String::new, |near| format!("did you mean `{near}`?"));
                self.report_word(path, name, format!("the kubelet has no metric `{name}`"), note);
            }
        }
    }

    fn check_keys(
        &mut self,
        path: &[PathSegment],
        expression: &Expression,
        variable: Variable,
        kind: &str,
        known: &BTreeSet<&str>,
    ) {
        let KeysRead::Keys(read) = expression.keys_read(variable) else { return };
        for name in read.iter().filter(|name| !known.contains(name.as_str())) {
            let all = || format!("{kind}s of the case: {}", list_names(known.iter().copied()));
            let note = did_you_mean(name, known.iter().copied()).unwrap_or_else(all);
            self.report(path, format!("`{variable}` has no `{name}`"), note);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("invalid CEL", "expect:\n", "until: pods.alloc ==\nexpect:\n"),
            (
                "a variable outside of its macro",
                "expect:\n",
                "until: samples.all(s, s.t > 1) && s.t < 9\nexpect:\n",
            ),
            ("a condition that is a sum", "expect:\n", "until: 1 + 1\nexpect:\n"),
            ("a trigger that is a text", "expect:\n", "trigger: \"'text'\"\nexpect:\n"),
            (
                "a step that waits for a number",
                "expect:\n",
                "do:\n  - {when: size(events), wait: 1s}\nexpect:\n"
            ),
            ("unknown variable", "expect:\n", "until: pod.alloc.status.phase == 'Failed'\nexpect:\n"),
            ("an answer that no step keeps", "expect:\n", "until: answers.started.code == 0\nexpect:\n"),
            ("a misspelt pod in a condition", "expect:\n", "until: running(pods.aloc)\nexpect:\n"),
            (
                "an unknown object in an assertion",
                "expect:\n",
                "expect:\n  that: [{what: a, value: objects.web.status.replicas, is: 1}]\n",
            ),
        ]));
    }
}
