//! Verdicts of real kubelets for the pages of cases.

use std::collections::BTreeMap;

use evictlab_judge::Verdict;
use evictlab_report::KubeletResults;
use evictlab_rules::{CgroupVersion, KubeletVersion};

use super::catalogue::{Verdicts, VersionVerdict};

/// Returns the verdicts of real kubelets, by cgroup version of their hosts. Executions with
/// different verdicts are counted.
pub fn real_verdicts(all: &[KubeletResults]) -> Vec<(String, Verdicts)> {
    // A minor may have results of several patches.
    let mut by_cgroup: BTreeMap<CgroupVersion, Executions<'_>> = BTreeMap::new();
    for results in all {
        let Ok(KubeletVersion { major, minor, .. }) = results.kubelet.parse() else { continue };
        let executions = by_cgroup.entry(results.cgroup).or_default();
        for (case, results) in &results.cases {
            let counts = executions.entry((case, format!("v{major}.{minor}"))).or_default();
            for (verdict, count) in &results.verdicts {
                *counts.entry(*verdict).or_default() += count;
            }
        }
    }
    by_cgroup
        .into_iter()
        .map(|(cgroup, executions)| {
            let mut verdicts = Verdicts::new();
            for ((case, minor), counts) in executions {
                verdicts.entry(case.to_owned()).or_default().insert(minor, verdict_of(counts));
            }
            (format!("real, cgroup {cgroup}"), verdicts)
        })
        .collect()
}

/// Numbers of executions, by case and minor version.
type Executions<'a> = BTreeMap<(&'a str, String), Counts>;

/// Numbers of executions, by verdict.
type Counts = BTreeMap<Verdict, u32>;

fn verdict_of(counts: Counts) -> VersionVerdict {
    let only = counts.keys().next().copied().filter(|_| counts.len() == 1);
    only.map_or_else(|| VersionVerdict::Counts(counts), VersionVerdict::Same)
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
            json("v1.36.3", "v2", r#"{"failed": 2}"#),
        ];
        let verdicts = real_verdicts(&all);
        let names: Vec<&str> = verdicts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["real, cgroup v1", "real, cgroup v2"]);
        for (place, minor, expected) in [
            (0, "v1.33", Some("passed 4, failed 1")),
            (0, "v1.36", Some("reproduced")),
            (1, "v1.36", Some("passed 1, failed 2")),
            (1, "v1.33", None),
        ] {
            let verdict = verdicts[place].1["message/a"].get(minor).map(ToString::to_string);
            assert_eq!(verdict.as_deref(), expected, "{minor}");
        }
    }
}
