//! Verdicts of real kubelets for the pages of cases.

use std::collections::BTreeMap;

use evictlab_report::KubeletResults;
use evictlab_rules::KubeletVersion;

use super::catalogue::Verdicts;

/// Returns the verdicts of real kubelets, by cgroup version of their hosts. Executions with
/// different verdicts are counted: `passed 4, failed 1`.
pub fn real_verdicts(all: &[KubeletResults]) -> Vec<(String, Verdicts)> {
    let mut by_cgroup: BTreeMap<String, Verdicts> = BTreeMap::new();
    for results in all {
        let Ok(KubeletVersion { major, minor, .. }) = results.kubelet.parse() else { continue };
        let verdicts = by_cgroup.entry(format!("real, cgroup {}", results.cgroup)).or_default();
        for (case, results) in &results.cases {
            let text = match results.verdicts.iter().collect::<Vec<_>>()[..] {
                [(verdict, _)] => verdict.to_string(),
                ref several => several
                    .iter()
                    .map(|(verdict, executions)| format!("{verdict} {executions}"))
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            verdicts.entry(case.clone()).or_default().insert(format!("v{major}.{minor}"), text);
        }
    }
    by_cgroup.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_grouped_by_cgroup_and_minor() {
        let json = |kubelet: &str, cgroup: &str, verdicts: &str| -> KubeletResults {
            let text = format!(
                r#"{{"kubelet": "{kubelet}", "cgroup": "{cgroup}", "cases": {{"message/a": {{"verdicts": {verdicts}}}}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let all = [
            json("v1.33.13", "v1", r#"{"passed": 4, "failed": 1}"#),
            json("v1.36.2", "v1", r#"{"reproduced": 2}"#),
            json("v1.36.2", "v2", r#"{"passed": 1}"#),
        ];
        let verdicts = real_verdicts(&all);
        let names: Vec<&str> = verdicts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["real, cgroup v1", "real, cgroup v2"]);
        let cell = |place: usize, minor: &str| verdicts[place].1["message/a"].get(minor).map(String::as_str);
        assert_eq!(cell(0, "v1.33"), Some("passed 4, failed 1"));
        assert_eq!(
            (cell(0, "v1.36"), cell(1, "v1.36"), cell(1, "v1.33")),
            (Some("reproduced"), Some("passed"), None)
        );
    }
}
