//! Requirements on labels, and label selectors in objects (`metav1.LabelSelector`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use crate::resource::ObjectExt;

/// Operator of a requirement on the value of a label or field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
}

impl Operator {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            _ => return None,
        })
    }

    /// Returns whether a value meets the requirement; `None` for a label that is missing. `Gt` and
    /// `Lt` compare with the first of `values`.
    pub(crate) fn is_met<'a>(self, value: Option<&str>, mut values: impl Iterator<Item = &'a str>) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        match self {
            Self::In => value.is_some_and(|value| values.any(|wanted| wanted == value)),
            Self::NotIn => value.is_none_or(|value| values.all(|unwanted| unwanted != value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Gt | Self::Lt => {
                let numbers = value.and_then(number).zip(values.next().and_then(number));
                numbers.is_some_and(
                    |(value, bound)| if self == Self::Gt { value > bound } else { value < bound },
                )
            }
        }
    }
}

/// Returns the selector of a budget, ReplicaSet or Job.
pub(crate) fn of(object: &Value) -> Option<LabelSelector> {
    object.spec().read("selector")
}

/// Returns whether the selector of a budget, ReplicaSet or Job matches a pod.
pub(crate) fn selects(object: &Value, pod: &Value) -> bool {
    matches(of(object).as_ref(), pod.labels())
}

/// Returns whether labels match a selector. An empty selector matches everything, a missing one
/// nothing.
pub(crate) fn matches(selector: Option<&LabelSelector>, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    selector.is_some_and(|selector| {
        selector.match_labels.iter().flatten().all(|(key, value)| label(key) == Some(value))
            && selector
                .match_expressions
                .iter()
                .flatten()
                .all(|one| meets(&one.operator, label(&one.key), one.values.as_deref()))
    })
}

/// Returns whether the value of a label or field meets a requirement of a label selector or node
/// selector.
pub(crate) fn meets(operator: &str, value: Option<&str>, values: Option<&[String]>) -> bool {
    let values = values.unwrap_or_default().iter().map(String::as_str);
    Operator::parse(operator).is_some_and(|operator| operator.is_met(value, values))
}
