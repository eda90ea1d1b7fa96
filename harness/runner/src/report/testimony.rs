//! Which witness of an eviction said what, and each message taken apart, as Markdown.

use std::fmt::Write;

use evictlab_rules::message::{EvictionMessage, NodePressure, Offender};

use super::account::code;
use crate::judge::Testimony;

/// Which witness of a pod's eviction said what: one line per message, with all who said it.
pub(super) fn witnesses(text: &mut String, testimony: &Testimony) {
    let Testimony { pod, events, status, condition, annotations } = testimony;
    let mut said: Vec<(&str, Vec<String>)> = vec![];
    let numbered = events.iter().enumerate().map(|(nth, message)| {
        (if events.len() == 1 { "event".to_owned() } else { format!("event {}", nth + 1) }, message)
    });
    let others = [("status", status), ("condition", condition)]
        .into_iter()
        .filter_map(|(witness, message)| Some((witness.to_owned(), message.as_ref()?)));
    for (witness, message) in numbered.chain(others) {
        match said.iter_mut().find(|(known, _)| *known == message.as_str()) {
            Some((_, witnesses)) => witnesses.push(witness),
            None => said.push((message, vec![witness])),
        }
    }
    let _ = writeln!(text, "\nWhat the witnesses said of pod {}:\n", code(pod));
    for (message, witnesses) in said {
        let _ = writeln!(text, "- {}: {}", witnesses.join(", "), code(message));
        for part in apart(message) {
            let _ = writeln!(text, "  - {part}");
        }
    }
    let silent: Vec<&str> =
        [("event", events.is_empty()), ("status", status.is_none()), ("condition", condition.is_none())]
            .into_iter()
            .filter_map(|(witness, silent)| silent.then_some(witness))
            .collect();
    if !silent.is_empty() {
        let _ = writeln!(text, "- {}: nothing", silent.join(", "));
    }
    for (key, value) in annotations.iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "- annotation {key}: {}", code(&value));
    }
}

/// What a message says, one statement each; of a message that no kubelet writes, where it leaves the grammar.
pub(crate) fn apart(message: &str) -> Vec<String> {
    match message.parse() {
        Ok(EvictionMessage::NodePressure(pressure)) => pressure_apart(&pressure),
        Ok(EvictionMessage::EmptyDirLimit { volume, limit }) => {
            vec![format!("emptyDir {} over its limit {limit}", code(&volume))]
        }
        Ok(EvictionMessage::PodLimit { limit }) => {
            vec![format!("the pod over its containers' limits, {limit} in all")]
        }
        Ok(EvictionMessage::ContainerLimit { container, limit }) => {
            vec![format!("container {} over its limit {limit}", code(&container))]
        }
        Ok(EvictionMessage::Rejected { conditions, .. }) => {
            let conditions: Vec<_> = conditions.iter().map(|condition| condition.as_str()).collect();
            vec![format!("not admitted: {}", conditions.join(", "))]
        }
        Err(error) => vec![error.to_string()],
    }
}

fn pressure_apart(pressure: &NodePressure) -> Vec<String> {
    let NodePressure { resource, threshold, pod, containers } = pressure;
    let limits = match threshold {
        Some(threshold) => format!(": threshold {}, available {}", threshold.quantity, threshold.available),
        None => ", no threshold stated".to_owned(),
    };
    let offender = |who, Offender { name, usage, request }: &Offender| {
        format!("{who} {}: {usage}, request {request}", code(name))
    };
    let mut parts = vec![format!("{resource}{limits}")];
    parts.extend(pod.iter().map(|pod| offender("pod", pod)));
    parts.extend(containers.iter().map(|container| offender("container", container)));
    if pod.is_none() && containers.is_empty() {
        parts.push("nobody is named".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_apart() {
        let low = "The node was low on resource: memory. ";
        let threshold = "Threshold quantity: 100Mi, available: 90Mi. ";
        for (message, parts) in [
            (low.to_owned(), "memory, no threshold stated; nobody is named"),
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
                "the pod over its containers' limits, 40Mi in all",
            ),
            ("The node had condition: [DiskPressure]. ".to_owned(), "not admitted: DiskPressure"),
        ] {
            assert_eq!(apart(&message).join("; "), parts);
        }
        let strange = apart("The node was tired. ").join("; ");
        assert!(strange.starts_with("no eviction message: "), "{strange}");
    }
}
