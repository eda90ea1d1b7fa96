//! Comparison of modelled kubelets with the results of real ones.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::kubelet_results::{CaseResults, KubeletResults};
use evictlab_judge::Verdict;
use evictlab_rules::CgroupVersion;

/// Agreement of the modelled kubelet of a version with the real ones.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KubeletParity {
    /// Version of the kubelet.
    pub kubelet: String,
    /// cgroup version of the hosts.
    pub cgroup: CgroupVersion,
    /// Cases, in the order of their names.
    pub cases: Vec<CaseAgreement>,
}

/// Agreement on a case.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseAgreement {
    /// `suite/case`.
    pub case: String,
    /// The conclusion.
    pub agreement: Agreement,
    /// Number of executions on real kubelets with each verdict.
    pub real: BTreeMap<Verdict, u32>,
    /// Number of executions on modelled kubelets with each verdict.
    pub model: BTreeMap<Verdict, u32>,
    /// Messages that only real kubelets sent, which usually have more executions.
    pub only_real: BTreeSet<String>,
    /// Messages that only the model sent.
    pub only_model: BTreeSet<String>,
}

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The verdicts agree, and real kubelets sent every message that the model sent.
    Same,
    /// The verdicts agree. The model sent a message that real kubelets did not send, or none at
    /// all.
    OtherMessages,
    /// The modelled kubelet has a verdict that no real one had, or vice versa.
    OtherVerdict,
    /// No real kubelet has a conclusive verdict.
    Pending,
    /// The case does not apply to the version of the kubelet or of cgroups.
    NotApplicable,
    /// The modelled kubelet does not have a conclusive verdict.
    NotModelled,
}

/// A case to compare.
#[derive(Clone, Debug)]
pub struct ComparedCase {
    /// `suite/case`.
    pub id: String,
    /// It applies to the version of the kubelet and of cgroups.
    pub applies: bool,
    /// A known bug of the case shows only sometimes: `passed` and `reproduced` agree.
    pub has_intermittent_bug: bool,
    /// Pods that may be evicted or not. Their messages are not compared: the same kubelet differs
    /// from run to run.
    pub may_be_evicted: Vec<String>,
    /// For pods with the same spec as an earlier pod, its name. Their messages count as its
    /// messages: which of them shows an intermittent effect differs from run to run.
    pub equal_pods: BTreeMap<String, String>,
}

/// Compares results of real kubelets with those of modelled ones.
pub fn parity(real: &KubeletResults, model: &KubeletResults, cases: &[ComparedCase]) -> KubeletParity {
    let none = CaseResults::default();
    let compare = |case: &ComparedCase| {
        let results_of = |results: &KubeletResults| results.cases.get(&case.id).unwrap_or(&none).clone();
        compare(case, results_of(real), results_of(model))
    };
    let mut cases: Vec<CaseAgreement> = cases.iter().map(compare).collect();
    cases.sort_by(|one, other| one.case.cmp(&other.case));
    KubeletParity { kubelet: real.kubelet.clone(), cgroup: real.cgroup, cases }
}

fn compare(case: &ComparedCase, mut real: CaseResults, mut model: CaseResults) -> CaseAgreement {
    for results in [&mut real, &mut model] {
        let messages = std::mem::take(&mut results.messages);
        results.messages = messages.into_iter().filter_map(|message| case.comparable(message)).collect();
    }
    let only_real: BTreeSet<String> = real.messages.difference(&model.messages).cloned().collect();
    let only_model: BTreeSet<String> = model.messages.difference(&real.messages).cloned().collect();
    let conclusive = |results: &CaseResults| -> BTreeSet<Verdict> {
        let verdicts = results.verdicts.keys().copied().filter(|verdict| verdict.is_conclusive());
        verdicts
            .map(|verdict| match verdict {
                Verdict::Reproduced if case.has_intermittent_bug => Verdict::Passed,
                verdict => verdict,
            })
            .collect()
    };
    let agreement = match (conclusive(&real), conclusive(&model)) {
        (real, _) if real.is_empty() && !case.applies => Agreement::NotApplicable,
        (real, _) if real.is_empty() => Agreement::Pending,
        (_, model) if model.is_empty() => Agreement::NotModelled,
        (real, model) if real != model => Agreement::OtherVerdict,
        _ if !only_model.is_empty() => Agreement::OtherMessages,
        _ if model.messages.is_empty() && !real.messages.is_empty() => Agreement::OtherMessages,
        _ => Agreement::Same,
    };
    CaseAgreement {
        case: case.id.clone(),
        agreement,
        real: real.verdicts,
        model: model.verdicts,
        only_real,
        only_model,
    }
}

impl ComparedCase {
    /// Returns a message as it is compared; `None` if it is not.
    fn comparable(&self, message: String) -> Option<String> {
        let Some((pod, rest)) = message.split_once(", ") else { return Some(message) };
        if self.may_be_evicted.iter().any(|other| other == pod) {
            return None;
        }
        Some(self.equal_pods.get(pod).map(|first| format!("{first}, {rest}")).unwrap_or(message))
    }
}

impl KubeletParity {
    /// Returns the number of cases with this conclusion.
    pub fn count(&self, agreement: Agreement) -> usize {
        self.cases.iter().filter(|case| case.agreement == agreement).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, verdicts and messages of a case.
    type Row<'a> = (&'a str, &'a [(Verdict, u32)], &'a [&'a str]);

    fn results(cases: &[Row<'_>]) -> KubeletResults {
        let cases = cases.iter().map(|(case, verdicts, messages)| {
            let verdicts = verdicts.iter().copied().collect();
            let messages = messages.iter().map(|text| (*text).to_owned()).collect();
            ((*case).to_owned(), CaseResults { verdicts, messages })
        });
        KubeletResults { kubelet: "v1.36.2".into(), cgroup: CgroupVersion::V1, cases: cases.collect() }
    }

    #[test]
    fn verdicts_and_messages_are_compared() {
        use Verdict::{Failed, Inconclusive, Passed, Reproduced, Skipped};
        let real = results(&[
            ("a", &[(Passed, 5)], &["p, event: one"]),
            ("b", &[(Passed, 4), (Failed, 1)], &[]),
            ("c", &[(Reproduced, 1), (Inconclusive, 2)], &["p, event: one", "p, event: two"]),
            ("d", &[(Inconclusive, 2)], &[]),
            ("e", &[(Passed, 1)], &[]),
            ("g", &[(Passed, 5)], &["p, event: one", "p, event+status: one"]),
            ("h", &[(Passed, 5)], &["p, event: one"]),
            ("i", &[(Reproduced, 1)], &[]),
            ("j", &[(Reproduced, 1)], &[]),
            ("k", &[(Passed, 1)], &["p, event: one", "q, event+status: one"]),
            ("l", &[(Passed, 1)], &["p, event: one", "q, event+status: one"]),
        ]);
        let model = results(&[
            ("a", &[(Passed, 1)], &["p, event: one"]),
            ("b", &[(Passed, 1)], &[]),
            ("c", &[(Reproduced, 1)], &["p, event: one", "p, event: three"]),
            ("d", &[(Passed, 1)], &[]),
            ("e", &[(Skipped, 1)], &[]),
            ("g", &[(Passed, 1)], &["p, event: one"]),
            ("h", &[(Passed, 1)], &[]),
            ("i", &[(Passed, 1)], &[]),
            ("j", &[(Passed, 1)], &[]),
            ("k", &[(Passed, 1)], &["p, event: one", "q, event: one"]),
            ("l", &[(Passed, 1)], &["p, event+status: one", "q, event: one"]),
        ]);
        let ids = ["m", "l", "k", "j", "i", "h", "g", "f", "e", "d", "c", "b", "a"];
        let cases = ids.map(|id| ComparedCase {
            id: id.to_owned(),
            applies: id != "m",
            has_intermittent_bug: id == "j",
            may_be_evicted: if id == "k" { vec!["q".to_owned()] } else { Vec::new() },
            equal_pods: (id == "l").then(|| ("q".to_owned(), "p".to_owned())).into_iter().collect(),
        });
        let parity = parity(&real, &model, &cases);
        let agreements: Vec<(&str, Agreement)> =
            parity.cases.iter().map(|case| (case.case.as_str(), case.agreement)).collect();
        let expected = [
            ("a", Agreement::Same),
            ("b", Agreement::OtherVerdict),
            ("c", Agreement::OtherMessages),
            ("d", Agreement::Pending),
            ("e", Agreement::NotModelled),
            ("f", Agreement::Pending),
            ("g", Agreement::Same),
            ("h", Agreement::OtherMessages),
            ("i", Agreement::OtherVerdict),
            ("j", Agreement::Same),
            ("k", Agreement::Same),
            ("l", Agreement::Same),
            ("m", Agreement::NotApplicable),
        ];
        assert_eq!(agreements, expected);
        insta::assert_snapshot!(format!(
            "{}\n{}",
            super::super::parity_table(std::slice::from_ref(&parity)),
            super::super::parity_details(&parity)
        ));
    }
}
