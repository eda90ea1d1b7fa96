//! Checks of labels.

use super::checker::Checker;
use crate::yaml_path;

impl Checker<'_> {
    /// Checks labels by the rules of Ginkgo: a label filter could not select others.
    pub(crate) fn check_labels(&mut self) {
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
