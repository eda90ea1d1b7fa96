//! Checks of the configuration of the kubelet.

use super::checker::{Checker, join};
use crate::action::NodeChange;
use crate::kubelet_fields::config_mistakes;
use crate::yaml_path;

impl Checker<'_> {
    /// Checks the fields of the kubelet's configuration, of the case and of steps.
    pub(crate) fn check_kubelet_config(&mut self) {
        let case = self.case;
        let of_case = (yaml_path!["kubelet-config"].to_vec(), &case.kubelet_config);
        let steps = case.steps.iter().enumerate();
        let of_steps = steps.filter_map(|(at, step)| match step.node_change() {
            Some(NodeChange::Configure(config)) => Some((yaml_path!["do", at, "configure"].to_vec(), config)),
            _ => None,
        });
        for (path, config) in std::iter::once(of_case).chain(of_steps) {
            for mistake in config_mistakes(config) {
                let at = join(&path, &mistake.path);
                match mistake.key {
                    Some(key) => self.report_word(&at, &key, mistake.message, mistake.note),
                    None => self.report(&at, mistake.message, mistake.note),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[(
            "eviction settings with which no kubelet starts",
            "expect:\n",
            "kubelet-config:\n  evictionHard: {nodefs.available: lots}\ndo:\n  - {configure: {evictionSoftGracePeriod: {nodefs.available: soon}}}\nexpect:\n",
        ),]));
    }
}
