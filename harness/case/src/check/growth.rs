//! Checks that one container grows in a case with pressure, and none in a case without.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::checker::Checker;
use crate::action::Action;
use crate::manifest_types::containers_of;
use crate::positions::PathSegment;
use crate::pressure::{GROWTH_VARIABLES, PressureMechanism};
use crate::schema::Case;
use crate::yaml_path;

/// Matches a growth variable, which evictlab sets in the containers of a case with pressure.
static GROWTH_VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    let names = GROWTH_VARIABLES.join("|");
    Regex::new(&format!(r"\$[({{]?({names})\b")).expect("the pattern is valid")
});

impl Checker<'_> {
    /// Checks that one container uses the growth variables in a case with pressure, and none in a
    /// case without, in which the variables are not set. With `by: kube-reserved`, no container has
    /// to use them.
    pub(crate) fn check_growth(&mut self) {
        let growing = growing_containers(self.case);
        match (self.case.pressure.as_ref().map(|pressure| pressure.by), growing.as_slice()) {
            (Some(PressureMechanism::KubeReserved), []) => {}
            (Some(PressureMechanism::Threshold), []) => {
                let note = "let one container use some, such as args: [stress, --mem-total, $(TOTAL), …]";
                self.report(yaml_path!["pressure"], "no container uses the growth variables", note);
            }
            (Some(_), [_, more @ ..]) => {
                for path in more {
                    self.report(
                        path,
                        "more than one container grows",
                        "only one container may use growth variables, such as $(TOTAL)",
                    );
                }
            }
            (None, growing) => {
                for path in growing {
                    let note = "growth variables, such as $(TOTAL), are only set in a case with `pressure`";
                    self.report(path, "the container grows, but the case has no `pressure`", note);
                }
            }
        }
    }
}

/// Returns the paths of the manifests that use a growth variable.
fn growing_containers(case: &Case) -> Vec<Vec<PathSegment>> {
    let mut growing = vec![];
    for (at, manifest) in case.pods.iter().enumerate() {
        let spec = manifest.get("spec").and_then(Value::as_object);
        for (list, item, container) in spec.into_iter().flat_map(containers_of) {
            if GROWTH_VARIABLE.is_match(&container.to_string()) {
                growing.push(yaml_path!["pods", at, "spec", list, item, "name"].to_vec());
            }
        }
    }
    for (at, ephemeral) in case.ephemeral_containers.iter().enumerate() {
        if ephemeral.container.values().any(|value| GROWTH_VARIABLE.is_match(&value.to_string())) {
            growing.push(yaml_path!["ephemeral-containers", at, "container", "name"].to_vec());
        }
    }
    let other_manifests = [("objects", &case.objects), ("static-pods", &case.static_pods)];
    for (list, manifests) in other_manifests {
        for (at, manifest) in manifests.iter().enumerate() {
            if GROWTH_VARIABLE.is_match(&Value::Object(manifest.clone()).to_string()) {
                growing.push(yaml_path![list, at].to_vec());
            }
        }
    }
    for (at, step) in case.steps.iter().enumerate() {
        if step
            .created_object()
            .is_some_and(|object| GROWTH_VARIABLE.is_match(&Value::Object(object.clone()).to_string()))
        {
            growing.push(yaml_path!["do", at, "create"].to_vec());
        }
        let static_pod = step.created_static_pod();
        if static_pod.is_some_and(|pod| GROWTH_VARIABLE.is_match(&Value::Object(pod.clone()).to_string())) {
            growing.push(yaml_path!["do", at, "create-static-pod"].to_vec());
        }
        if let Some(Action::Exec(exec)) = &step.action
            && exec.command.iter().any(|word| GROWTH_VARIABLE.is_match(word))
        {
            growing.push(yaml_path!["do", at, "exec", "command"].to_vec());
        }
    }
    growing
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("a second pod that grows", "ramp: 15s", "pod: {name: hog}"),
            ("nothing grows", "$(TOTAL)", "1Gi"),
            ("two grow", "restartPolicy: Always", "command: [sh, -c, \"echo $TOTAL_BYTES\"]"),
            ("grows without pressure", "pressure: {signal: memory.available, ramp: 15s}\n", ""),
        ]));
    }
}
