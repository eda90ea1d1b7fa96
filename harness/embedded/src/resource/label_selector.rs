//! Requirements on labels, and label selectors in objects (`metav1.LabelSelector`).

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

/// Returns whether labels match a selector. An empty selector matches everything, a missing one
/// nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let mut equal = selector["matchLabels"].as_object().into_iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && selector.items("matchExpressions").all(|expression| meets(expression, labels, None))
}

/// Returns whether labels match a requirement of a label selector or node selector. For
/// `matchFields`, `field` is the value to compare.
pub(crate) fn meets(requirement: &Value, labels: &Value, field: Option<&str>) -> bool {
    let value = field.or_else(|| labels.get(requirement.text("key")).and_then(Value::as_str));
    let values = requirement.items("values").filter_map(Value::as_str);
    Operator::parse(requirement.text("operator")).is_some_and(|operator| operator.is_met(value, values))
}
