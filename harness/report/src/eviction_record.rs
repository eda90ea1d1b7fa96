//! The records of an eviction (events, status, condition, annotations) and their messages, as
//! Markdown.

use std::fmt::Write;

use evictlab_rules::message::{EvictionMessage, NodePressure, Offender};

use crate::text::{inert_markdown, markdown_code};
use evictlab_judge::EvictionRecord;

/// Writes the eviction message of a pod with every record that contains it: one line for each
/// distinct message, then the records without one, then the annotations.
pub(crate) fn write_eviction_record(text: &mut String, record: &EvictionRecord) {
    let EvictionRecord { pod, events, status, condition, annotations } = record;
    let mut messages: Vec<(&str, Vec<String>)> = vec![];
    let numbered = events.iter().enumerate().map(|(nth, message)| {
        (if events.len() == 1 { "event".to_owned() } else { format!("event {}", nth + 1) }, message)
    });
    let others = [("status", status), ("condition", condition)]
        .into_iter()
        .filter_map(|(source, message)| Some((source.to_owned(), message.as_ref()?)));
    for (source, message) in numbered.chain(others) {
        match messages.iter_mut().find(|(known, _)| *known == message.as_str()) {
            Some((_, sources)) => sources.push(source),
            None => messages.push((message, vec![source])),
        }
    }
    let _ = writeln!(text, "\nEviction of pod {}:\n", markdown_code(pod));
    for (message, sources) in messages {
        let _ = writeln!(text, "- {}: {}", sources.join(", "), markdown_code(message));
        for part in describe_message(message) {
            let _ = writeln!(text, "  - {part}");
        }
    }
    let missing: Vec<&str> =
        [("event", events.is_empty()), ("status", status.is_none()), ("condition", condition.is_none())]
            .into_iter()
            .filter_map(|(source, missing)| missing.then_some(source))
            .collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "- {}: missing", missing.join(", "));
    }
    for (key, value) in annotations.iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "- annotation {}: {}", inert_markdown(key), markdown_code(&value));
    }
}

/// Splits an eviction message into its statements. For a message that no kubelet writes, returns
/// the parse error.
pub fn describe_message(message: &str) -> Vec<String> {
    match message.parse() {
        Ok(EvictionMessage::NodePressure(pressure)) => describe_pressure(&pressure),
        Ok(EvictionMessage::EmptyDirLimit { volume, limit }) => {
            vec![format!("emptyDir {} over its limit {limit}", markdown_code(&volume))]
        }
        Ok(EvictionMessage::PodLimit { limit }) => {
            vec![format!("pod over the sum of its containers' limits, {limit}")]
        }
        Ok(EvictionMessage::ContainerLimit { container, limit }) => {
            vec![format!("container {} over its limit {limit}", markdown_code(&container))]
        }
        Ok(EvictionMessage::Rejected { conditions, .. }) => {
            let conditions: Vec<_> = conditions.iter().map(|condition| condition.as_str()).collect();
            vec![format!("not admitted: {}", conditions.join(", "))]
        }
        Err(error) => vec![inert_markdown(&error.to_string())],
    }
}

fn describe_pressure(pressure: &NodePressure) -> Vec<String> {
    let NodePressure { resource, threshold, pod, containers } = pressure;
    let limits = match threshold {
        Some(threshold) => format!(": threshold {}, available {}", threshold.quantity, threshold.available),
        None => ", no threshold given".to_owned(),
    };
    let offender = |who, Offender { name, usage, request }: &Offender| {
        format!("{who} {}: {usage}, request {request}", markdown_code(name))
    };
    let mut parts = vec![format!("{resource}{limits}")];
    parts.extend(pod.iter().map(|pod| offender("pod", pod)));
    parts.extend(containers.iter().map(|container| offender("container", container)));
    if pod.is_none() && containers.is_empty() {
        parts.push("no container named".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_messages() {
        let low = "The node was low on resource: memory. ";
        let threshold = "Threshold quantity: 100Mi, available: 90Mi. ";
        for (message, parts) in [
            (low.to_owned(), "memory, no threshold given; no container named"),
            (
                format!(
                    "{low}{threshold}Pod p was using 9Mi, request is 1Mi, has larger consumption of memory. \
                     Container a was using 8Mi, request is 0, has larger consumption of memory. "
                ),
                "memory: threshold 100Mi, available 90Mi; pod `p`: 9Mi, request 1Mi; container `a`: 8Mi, request 0",
            ),
            (
                "Usage of EmptyDir volume \"v\" exceeds the limit \"20Mi\". ".to_owned(),
                "emptyDir `v` over its limit 20Mi",
            ),
            (
                "Container c exceeded its local ephemeral storage limit \"20Mi\". ".to_owned(),
                "container `c` over its limit 20Mi",
            ),
            (
                "Pod ephemeral local storage usage exceeds the total limit of containers 40Mi. ".to_owned(),
                "pod over the sum of its containers' limits, 40Mi",
            ),
            ("The node had condition: [DiskPressure]. ".to_owned(), "not admitted: DiskPressure"),
        ] {
            assert_eq!(describe_message(&message).join("; "), parts);
        }
        let strange = describe_message("The node was tired. ").join("; ");
        assert!(strange.starts_with("not an eviction message: "), "{strange}");
    }
}
