//! Messages without the figures that vary between two runs.

use evictlab_judge::EvictionRecord;
use evictlab_rules::message::{EvictionMessage, NodePressure, Offender, ThresholdClause};
use evictlab_rules::quantity::Quantity;

/// Letters and digits of names that Kubernetes generates
/// (`k8s.io/apimachinery/pkg/util/rand/rand.go`).
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Length of the random suffix of a generated name.
const SUFFIX: usize = 5;

/// Returns the messages of an eviction as `pod, witnesses: message`: amounts are `#`, containers
/// are in the order of their names, and equal messages are listed once.
pub(super) fn shapes(record: &EvictionRecord) -> Vec<String> {
    let pod = without_generated_suffix(&record.pod);
    let events = record.events.iter().map(|text| ("event", text));
    let status = record.status.iter().map(|text| ("status", text));
    let condition = record.condition.iter().map(|text| ("condition", text));
    let mut shapes: Vec<(String, Vec<&str>)> = Vec::new();
    for (witness, text) in events.chain(status).chain(condition) {
        let shape = shape(text);
        match shapes.iter_mut().find(|(other, _)| *other == shape) {
            Some((_, witnesses)) if witnesses.contains(&witness) => {}
            Some((_, witnesses)) => witnesses.push(witness),
            None => shapes.push((shape, vec![witness])),
        }
    }
    shapes.into_iter().map(|(shape, witnesses)| format!("{pod}, {}: {shape}", witnesses.join("+"))).collect()
}

/// Returns a message with `#` for every amount that is measured, or the text if it is not an
/// eviction message. Requests and limits are part of the pod, and stay.
fn shape(text: &str) -> String {
    let mut message: EvictionMessage = match text.parse() {
        Ok(message) => message,
        Err(_) => return text.to_owned(),
    };
    if let EvictionMessage::NodePressure(pressure) = &mut message {
        mask(pressure);
    }
    if let EvictionMessage::Rejected { conditions, .. } = &mut message {
        conditions.sort_by_key(|condition| condition.as_str());
    }
    message.to_string().replace(MARKER, "#").trim_end().to_owned()
}

/// A quantity that does not occur in messages; masked amounts print as this text.
const MARKER: &str = "-1E";

fn mask(NodePressure { threshold, pod, containers, .. }: &mut NodePressure) {
    let masked = || Quantity::parse_verbatim(MARKER).expect("the marker is a quantity");
    if let Some(ThresholdClause { quantity, available }) = threshold {
        (*quantity, *available) = (masked(), masked());
    }
    for Offender { usage, .. } in pod.iter_mut().chain(containers.iter_mut()) {
        *usage = masked();
    }
    containers.sort_by(|one, other| one.name.cmp(&other.name));
}

/// Returns the name of a pod with `*` instead of the random suffix of a controller's pod, and of
/// the hash of its template before it.
fn without_generated_suffix(pod: &str) -> String {
    let is_generated = |part: &str| part.chars().all(|c| GENERATED.contains(c));
    match pod.rsplit_once('-') {
        Some((owner, suffix)) if suffix.len() == SUFFIX && is_generated(suffix) => {
            let template = owner.rsplit_once('-').filter(|(_, hash)| hash.len() >= 8 && is_generated(hash));
            format!("{}-*", template.map_or(owner, |(name, _)| name))
        }
        _ => pod.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_masked_and_containers_ordered() {
        let text = "The node was low on resource: memory. Threshold quantity: 500Mi, available: 412040Ki. \
            Container b was using 300Mi, request is 64Mi, has larger consumption of memory. \
            Container a was using 20Mi, request is 0, has larger consumption of memory. ";
        let record = EvictionRecord {
            pod: "el-pod".to_owned(),
            events: vec![text.to_owned(), text.replace("300Mi", "301Mi")],
            status: Some(text.to_owned()),
            condition: Some("The node was low on resource: memory. ".to_owned()),
            annotations: None,
        };
        let expected = [
            "el-pod, event+status: The node was low on resource: memory. Threshold quantity: #, available: #. \
            Container a was using #, request is 0, has larger consumption of memory. \
            Container b was using #, request is 64Mi, has larger consumption of memory.",
            "el-pod, condition: The node was low on resource: memory.",
        ];
        assert_eq!(shapes(&record), expected);
    }

    #[test]
    fn limits_are_kept() {
        let limit = "Container el exceeded its local ephemeral storage limit \"64Mi\". ";
        assert_eq!(shape(limit), limit.trim_end());
        assert_eq!(
            shape("The node had condition: [PIDPressure DiskPressure]. "),
            "The node had condition: [DiskPressure PIDPressure]."
        );
        assert_eq!(
            shape("Preempted in order to admit critical pod"),
            "Preempted in order to admit critical pod"
        );
    }

    #[test]
    fn generated_names_are_masked() {
        for (pod, expected) in [
            ("web-7d9f8c6b5d-x2x4z", "web-*"),
            ("agent-x2x4z", "agent-*"),
            ("el-bounded", "el-bounded"),
            ("el-first", "el-first"),
            ("storm-0", "storm-0"),
        ] {
            assert_eq!(without_generated_suffix(pod), expected, "{pod}");
        }
    }
}
