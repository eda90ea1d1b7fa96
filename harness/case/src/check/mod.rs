//! Checks of a case beyond its syntax: references resolve, and the parts fit together.

mod assertions;
mod checker;
mod expect;
mod expressions;
mod growth;
mod kubelet_config;
mod manifests;
mod node;
mod pod_specs;
mod pods;
mod pressure;
mod steps;

pub(crate) use checker::PathProblem;
pub use node::NAME_PREFIX;

use checker::Checker;

use crate::schema::Case;
use crate::yaml_path;

/// Checks a case; `stem` is the file name without its extension.
pub(crate) fn check(case: &Case, stem: &str) -> Vec<PathProblem> {
    let mut checker = Checker::new(case);
    if case.name != *stem {
        let what = format!("the case is named `{}`, but its file `{stem}.yaml`", case.name);
        checker.report(yaml_path!["name"], what, "both must be equal");
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

impl Checker<'_> {
    /// Checks labels by the rules of Ginkgo: a label filter could not select others.
    fn check_labels(&mut self) {
        for (at, label) in self.case.labels.iter().enumerate() {
            let reserved = |c: char| "&|!,()/".contains(c);
            if label.trim().is_empty()
                || label.contains(reserved)
                || label.starts_with(':')
                || label.ends_with(':')
            {
                let note = "a label must not contain & | ! , ( ) or /, nor begin or end with `:`";
                self.report(yaml_path!["labels", at], format!("invalid label {label:?}"), note);
            }
        }
    }
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
