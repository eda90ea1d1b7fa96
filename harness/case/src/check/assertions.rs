//! Checks of the assertions of a case.

use super::checker::Checker;
use crate::assertion::Assertion;
use crate::positions::PathSegment;
use crate::yaml_path;

impl Checker<'_> {
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
            ("a rate that cannot fail", "expect:\n", "expect:\n  rate: {what: x, of: 'true', at-least: 0}\n"),
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
