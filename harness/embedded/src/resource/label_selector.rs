//! Label selectors in objects (`metav1.LabelSelector`).

use serde_json::Value;

use crate::resource::ObjectExt;

/// Returns whether labels match a selector. An empty selector matches everything, a missing one
/// nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let Some(selector) = selector.as_object() else { return false };
    let mut equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|expression| meets(expression, labels, None))
}

/// Returns whether labels match a requirement of a label selector or node selector. For
/// `matchFields`, `field` is the value to compare.
pub(crate) fn meets(requirement: &Value, labels: &Value, field: Option<&str>) -> bool {
    let key = requirement.text("key");
    let value = field.or_else(|| labels.get(key).and_then(Value::as_str));
    let mut values = requirement.items("values").filter_map(Value::as_str);
    match requirement.text("operator") {
        "In" => value.is_some_and(|value| values.any(|wanted| wanted == value)),
        "NotIn" => value.is_none_or(|value| values.all(|unwanted| unwanted != value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        operator @ ("Gt" | "Lt") => {
            let number = |text: &str| text.parse::<i64>().ok();
            let (Some(value), Some(bound)) = (value.and_then(number), values.next().and_then(number)) else {
                return false;
            };
            if operator == "Gt" { value > bound } else { value < bound }
        }
        _ => false,
    }
}
