//! All checks of a case, in their order.

use super::checker::{Checker, PathProblem};
use crate::schema::Case;
use crate::yaml_path;

/// Checks a case; `stem` is the file name without its extension.
pub(crate) fn check_case(case: &Case, stem: &str) -> Vec<PathProblem> {
    let mut checker = Checker::new(case);
    if case.name != *stem {
        let message = format!("the case is named `{}`, but its file `{stem}.yaml`", case.name);
        checker.report(yaml_path!["name"], message, "both must be equal");
    }
    checker.check_labels();
    checker.check_pods();
    checker.check_manifests();
    checker.check_ephemeral_containers();
    checker.check_pressure();
    checker.check_growth();
    checker.check_expect();
    checker.check_known_bugs();
    checker.check_node();
    checker.check_kubelet_config();
    checker.check_steps();
    checker.check_assertions();
    checker.check_expressions();
    checker.findings
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            ("invalid label", "Feature:Eviction", "Feature/Eviction"),
            ("invalid image name", "image: agnhost:2.52", "image: \"a'; touch b; '\""),
            ("name of another file", "name: good", "name: better"),
        ]));
    }
}
