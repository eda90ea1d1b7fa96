//! The comparison of the expected and the observed eviction message, field by field.

use std::collections::BTreeMap;

use evictlab_rules::message::{EvictionMessage, Offender};
use similar::TextDiff;

use crate::case_result::Check;
use evictlab_case::{ExpectedMessage, ResourceAmounts};

/// One field of the message.
struct Field {
    /// Name of the field, such as `container el1`.
    name: String,
    expected: Expected,
    observed: Option<String>,
}

enum Expected {
    /// The case does not state the field.
    Unstated,
    /// The stated value.
    Stated { value: String, holds: bool },
    /// The message must not have the field.
    Absent,
}

impl Field {
    fn holds(&self) -> bool {
        match &self.expected {
            Expected::Unstated => true,
            Expected::Stated { holds, .. } => *holds,
            Expected::Absent => self.observed.is_none(),
        }
    }

    fn check(&self) -> Option<Check> {
        let absent = || "not in the message".to_owned();
        let expected = match &self.expected {
            Expected::Unstated => return None,
            Expected::Stated { value, .. } => value.clone(),
            Expected::Absent => absent(),
        };
        let observed = self.observed.clone().unwrap_or_else(absent);
        Some(Check { name: format!("message: {}", self.name), holds: self.holds(), expected, observed })
    }

    /// Returns the expected and the observed line of a diff, which are equal if the field holds.
    fn lines(&self) -> [Option<String>; 2] {
        let line = |text: &String| format!("{}: {text}\n", self.name);
        let observed = self.observed.as_ref().map(line);
        let expected = match &self.expected {
            _ if self.holds() => observed.clone(),
            Expected::Stated { value, .. } => Some(line(value)),
            Expected::Unstated | Expected::Absent => None,
        };
        [expected, observed]
    }
}

/// The comparison of two messages.
pub(crate) struct MessageComparison {
    /// A check for each stated field.
    pub(crate) checks: Vec<Check>,
    /// A unified diff of all fields; empty if every field holds.
    pub(crate) diff: String,
}

/// Compares two messages.
pub(crate) fn compare(expected: &ExpectedMessage, observed: Option<&EvictionMessage>) -> MessageComparison {
    let fields = fields(expected, observed);
    let mut sides = [String::new(), String::new()];
    for field in &fields {
        for (side, line) in sides.iter_mut().zip(field.lines()) {
            side.push_str(&line.unwrap_or_default());
        }
    }
    let [old, new] = sides;
    let diff = TextDiff::from_lines(&old, &new);
    let diff = if old == new {
        String::new()
    } else {
        diff.unified_diff().context_radius(usize::MAX / 2).header("expected", "observed").to_string()
    };
    MessageComparison { checks: fields.iter().filter_map(Field::check).collect(), diff }
}

fn fields(expected: &ExpectedMessage, observed: Option<&EvictionMessage>) -> Vec<Field> {
    let pressure = observed.and_then(EvictionMessage::node_pressure);
    let resource = pressure.map(|message| message.resource.to_string());
    let mut fields =
        vec![text_field("resource", expected.resource.map(|resource| resource.to_string()), resource)];
    if let Some(clause) = pressure.and_then(|message| message.threshold.as_ref()) {
        let observed = Some(format!("{}, available {}", clause.quantity, clause.available));
        fields.push(Field { name: "threshold".to_owned(), expected: Expected::Unstated, observed });
    }
    let is_complete = expected.containers.is_some();
    let pod = pressure.and_then(|message| message.pod.as_ref());
    if pod.is_some() || expected.pod.is_some() {
        fields.push(offender_field("pod".to_owned(), expected.pod.as_ref(), is_complete, pod));
    }
    let mut names: BTreeMap<&str, (Option<&ResourceAmounts>, Option<&Offender>)> = BTreeMap::new();
    for (name, amounts) in expected.containers.iter().flatten() {
        names.entry(name.as_str()).or_default().0 = Some(amounts);
    }
    for offender in pressure.iter().flat_map(|message| &message.containers) {
        names.entry(&offender.name).or_default().1 = Some(offender);
    }
    for (name, (expected, observed)) in names {
        fields.push(offender_field(format!("container {name}"), expected, is_complete, observed));
    }
    fields.extend(limit_fields(expected, observed));
    fields.retain(|field| !matches!(field, Field { expected: Expected::Unstated, observed: None, .. }));
    fields
}

fn limit_fields(expected: &ExpectedMessage, observed: Option<&EvictionMessage>) -> [Field; 3] {
    let [mut emptydir, mut pod, mut container] = [None, None, None];
    match observed {
        Some(EvictionMessage::EmptyDirLimit { volume, limit }) => {
            emptydir = Some(format!("{volume} {limit}"))
        }
        Some(EvictionMessage::PodLimit { limit }) => pod = Some(limit.to_string()),
        Some(EvictionMessage::ContainerLimit { container: name, limit }) => {
            container = Some(format!("{name} {limit}"));
        }
        Some(EvictionMessage::NodePressure(_) | EvictionMessage::Rejected { .. }) | None => {}
    }
    let volume_limit =
        expected.emptydir_limit.as_ref().map(|limit| format!("{} {}", limit.volume, limit.limit));
    let container_limit =
        expected.container_limit.as_ref().map(|limit| format!("{} {}", limit.container, limit.limit));
    [
        text_field("limit of emptyDir", volume_limit, emptydir),
        text_field("limit of pod", expected.pod_limit.as_ref().map(ToString::to_string), pod),
        text_field("limit of container", container_limit, container),
    ]
}

fn text_field(name: &str, expected: Option<String>, observed: Option<String>) -> Field {
    let expected = match expected {
        None => Expected::Unstated,
        Some(value) => {
            let holds = observed.as_deref() == Some(value.as_str());
            Expected::Stated { value, holds }
        }
    };
    Field { name: name.to_owned(), expected, observed }
}

/// Returns the field of an offender. In a complete list, an offender that is not stated must be
/// absent.
fn offender_field(
    name: String,
    expected: Option<&ResourceAmounts>,
    is_complete: bool,
    observed: Option<&Offender>,
) -> Field {
    let expected = match expected {
        None if is_complete => Expected::Absent,
        None => Expected::Unstated,
        Some(ResourceAmounts { request, usage }) => {
            let holds = observed.is_some_and(|offender| {
                request.as_ref().is_none_or(|request| request.as_str() == offender.request.to_string())
                    && usage.as_ref().is_none_or(|bound| bound.holds(&offender.usage))
            });
            let usage = usage.as_ref().map_or("any".to_owned(), ToString::to_string);
            let request = request.as_ref().map_or("any".to_owned(), ToString::to_string);
            Expected::Stated { value: format!("usage {usage}, request {request}"), holds }
        }
    };
    let observed = observed.map(|offender| format!("usage {}, request {}", offender.usage, offender.request));
    Field { name, expected, observed }
}
