//! Parity as Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::agreement::{Agreement, CaseAgreement, KubeletParity};
use crate::text::{code_block, count_noun, inert_markdown, markdown_table, visible};
use evictlab_judge::Verdict;

/// Renders a row for each kubelet.
pub fn parity_table(all: &[KubeletParity]) -> String {
    let rows = all.iter().map(|kubelet| {
        let [same, other_messages, other_verdict, pending, not_modelled, not_applicable] = [
            Agreement::Same,
            Agreement::OtherMessages,
            Agreement::OtherVerdict,
            Agreement::Pending,
            Agreement::NotModelled,
            Agreement::NotApplicable,
        ]
        .map(|agreement| kubelet.count(agreement));
        let verdicts = same + other_messages;
        let compared = verdicts + other_verdict;
        [
            inert_markdown(&kubelet.kubelet),
            kubelet.cgroup.to_string(),
            format!("{verdicts} of {compared}"),
            format!("{same} of {verdicts}"),
            pending.to_string(),
            not_modelled.to_string(),
            not_applicable.to_string(),
        ]
    });
    let header = [
        "kubelet",
        "cgroup",
        "verdicts agree",
        "messages agree",
        "pending",
        "not modelled",
        "not applicable",
    ];
    visible(&markdown_table(&header, rows)).into_owned()
}

/// Renders the cases of a kubelet on which the model and the real kubelets do not agree, with the
/// messages; empty if they agree on all.
pub fn parity_details(kubelet: &KubeletParity) -> String {
    let differs =
        |case: &&CaseAgreement| matches!(case.agreement, Agreement::OtherVerdict | Agreement::OtherMessages);
    let mut text = String::new();
    for case in kubelet.cases.iter().filter(differs) {
        let name = inert_markdown(&case.case);
        let (real, model) = (verdicts(&case.real), verdicts(&case.model));
        let _ = match case.agreement {
            Agreement::OtherVerdict => writeln!(text, "- {name}: real {real}, model {model}"),
            _ => writeln!(text, "- {name}: {real} on both, other messages"),
        };
        let lines = |sign: char, messages: &BTreeSet<String>| -> String {
            messages.iter().map(|message| format!("{sign} {message}\n")).collect()
        };
        let messages = lines('-', &case.only_real) + &lines('+', &case.only_model);
        if !messages.is_empty() {
            let _ = writeln!(text, "\n{}", code_block("diff", &messages));
        }
    }
    visible(&text).into_owned()
}

fn verdicts(verdicts: &BTreeMap<Verdict, u32>) -> String {
    let one = |(verdict, n): (&Verdict, &u32)| match n {
        1 => verdict.to_string(),
        n => format!("{verdict} in {}", count_noun(*n as usize, "run")),
    };
    if verdicts.is_empty() {
        "not run".to_owned()
    } else {
        verdicts.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
