//! The differences between the reports of two kubelets: messages and annotations without measured
//! values.

use std::sync::LazyLock;

use regex::Regex;
use similar::TextDiff;

use evictlab_judge::EvictionRecord;

/// Measured values in a message.
static MEASURED_VALUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?<before>Threshold quantity: |available: |was using )(?<figure>[0-9][0-9A-Za-z.]*[0-9A-Za-z])",
    )
    .ok()
});

/// Returns the sentences of the messages and the annotations, one per line. Sentences about
/// containers are sorted by name: their order in a message is random.
fn statements(records: &[&EvictionRecord]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for EvictionRecord { pod, events, annotations, .. } in records {
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
            // Usages are in the order of the container names.
            if key.ends_with("_usage") {
                continue;
            }
            let mut parts: Vec<&str> =
                if value.is_empty() { vec!["(none)"] } else { value.split(',').collect() };
            parts.sort_unstable();
            lines.extend(parts.into_iter().map(|part| format!("{key}: {part}")));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Splits a message into sentences, with `…` for measured values.
fn sentences(message: &str) -> Vec<String> {
    let plain = match &*MEASURED_VALUES {
        Some(measured) => measured.replace_all(message, "$before…").into_owned(),
        None => message.to_owned(),
    };
    plain.split_inclusive(". ").map(|sentence| sentence.trim_end().to_owned()).collect()
}

/// Returns a unified diff with all lines, or an empty string if nothing differs.
pub(crate) fn difference(before: &[&EvictionRecord], after: &[&EvictionRecord]) -> String {
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

    fn record(message: &str, containers: &str) -> EvictionRecord {
        let annotations = serde_json::json!({
            "offending_containers": containers,
            "offending_containers_usage": "1Ki",
            "starved_resource": "memory",
        });
        EvictionRecord {
            pod: "alloc".to_owned(),
            events: vec![message.to_owned()],
            annotations: annotations.as_object().cloned(),
            ..EvictionRecord::default()
        }
    }

    #[test]
    fn ignores_measured_figures() {
        let low = "The node was low on resource: memory. Threshold quantity: ";
        let over = |name: &str, usage: &str| {
            format!("Container {name} was using {usage}, request is 0, has larger consumption of memory. ")
        };
        let old = record(&format!("{low}23670Mi, available: 24233340Ki. {}", over("el1", "180Ki")), "el1");
        let new = record(
            &format!("{low}23642Mi, available: 24204500Ki. {}{}", over("el2", "9Mi"), over("el1", "212Ki")),
            "el2,el1",
        );
        insta::assert_snapshot!(difference(&[&old], &[&new]));
        let same = record(&format!("{low}1Gi, available: 1020Mi. {}", over("el1", "1.5Mi")), "el1");
        assert_eq!(difference(&[&old], &[&same]), "");
        let silent = EvictionRecord { pod: "alloc".to_owned(), ..EvictionRecord::default() };
        assert!(difference(&[&old], &[&silent]).contains("+pod alloc: no Evicted event\n"));
    }
}
