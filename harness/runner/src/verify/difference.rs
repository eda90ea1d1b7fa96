//! What the kubelets say differently: the messages and annotations less the figures that are measured, which never are the same.

use std::sync::LazyLock;

use regex::Regex;
use similar::TextDiff;

use crate::judge::Testimony;

/// Figures of the moment.
static MEASURED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?<before>Threshold quantity: |available: |was using )(?<figure>[0-9][0-9A-Za-z.]*[0-9A-Za-z])",
    )
    .ok()
});

/// Every statement of one side, one a line: sentences of the message and annotations, those about containers in the order of their names, which in the message is arbitrary.
fn statements(testimony: &[&Testimony]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for Testimony { pod, events, annotations, .. } in testimony {
        lines.push(match events.len() {
            0 => format!("pod {pod}: no Evicted event"),
            1 => format!("pod {pod}: Evicted"),
            more => format!("pod {pod}: Evicted, {more} events"),
        });
        if let Some(message) = events.first() {
            let mut sentences: Vec<String> = sentences(message);
            let first = sentences.iter().position(|sentence| sentence.starts_with("Container "));
            sentences[first.unwrap_or(0)..].sort();
            lines.extend(sentences);
        }
        for (key, value) in annotations.iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // A usage stands beside its container's name.
            if key.ends_with("_usage") {
                continue;
            }
            let mut parts: Vec<&str> =
                if value.is_empty() { vec!["(nobody)"] } else { value.split(',').collect() };
            parts.sort_unstable();
            lines.extend(parts.into_iter().map(|part| format!("{key}: {part}")));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A message's sentences, with `…` for what was measured.
fn sentences(message: &str) -> Vec<String> {
    let plain = match &*MEASURED {
        Some(measured) => measured.replace_all(message, "$before…").into_owned(),
        None => message.to_owned(),
    };
    plain.split_inclusive(". ").map(|sentence| sentence.trim_end().to_owned()).collect()
}

/// The difference as a unified diff, with all that is equal; empty where nothing differs.
pub fn difference(before: &[&Testimony], after: &[&Testimony]) -> String {
    let (old, new) = (statements(before), statements(after));
    if old == new {
        return String::new();
    }
    let diff = TextDiff::from_lines(&old, &new);
    diff.iter_all_changes().map(|change| format!("{}{}", change.tag(), change.value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str, containers: &str) -> Testimony {
        let annotations = serde_json::json!({
            "offending_containers": containers,
            "offending_containers_usage": "1Ki",
            "starved_resource": "memory",
        });
        Testimony {
            pod: "alloc".to_owned(),
            events: vec![message.to_owned()],
            annotations: annotations.as_object().cloned(),
            ..Testimony::default()
        }
    }

    #[test]
    fn what_is_said_differs_and_figures_do_not() {
        let low = "The node was low on resource: memory. Threshold quantity: ";
        let over = |name: &str, usage: &str| {
            format!("Container {name} was using {usage}, request is 0, has larger consumption of memory. ")
        };
        let old = said(&format!("{low}23670Mi, available: 24233340Ki. {}", over("el1", "180Ki")), "el1");
        let new = said(
            &format!("{low}23642Mi, available: 24204500Ki. {}{}", over("el2", "9Mi"), over("el1", "212Ki")),
            "el2,el1",
        );
        insta::assert_snapshot!(difference(&[&old], &[&new]));
        let same = said(&format!("{low}1Gi, available: 1020Mi. {}", over("el1", "1.5Mi")), "el1");
        assert_eq!(difference(&[&old], &[&same]), "");
        let silent = Testimony { pod: "alloc".to_owned(), ..Testimony::default() };
        assert!(difference(&[&old], &[&silent]).contains("+pod alloc: no Evicted event\n"));
    }
}
