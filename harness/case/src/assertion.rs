//! Assertions on the evidence of a case: CEL expressions with bounds.

use std::fmt;

use evictlab_rules::CgroupVersion;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::expression::Expression;
use crate::values::{KubeletRequirement, Pattern};

/// An assertion: a value, and bounds on it. Without a bound the value must be `true`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assertion {
    /// Description of the value, such as `phase of hog`. An assertion of a known bug replaces the
    /// assertion of the case with the same description, or is added.
    pub what: String,
    /// Value, as a CEL expression.
    pub value: Expression,
    /// The value equals this one.
    #[serde(default, deserialize_with = "present")]
    pub is: Option<Value>,
    /// The value differs from this one.
    #[serde(default, deserialize_with = "present")]
    pub is_not: Option<Value>,
    /// The value equals one of these.
    #[serde(default)]
    pub one_of: Option<Vec<Value>>,
    /// The value is a string, and the regular expression matches any part of it.
    #[serde(default)]
    pub matches: Option<Pattern>,
    /// The value is a number, and at least this.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// The value is a number, and at most this.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// The last access of the expression finds nothing in a parent that exists: a key, an index, a
    /// container or a condition. Any other expression without a value fails the assertion.
    #[serde(default)]
    pub absent: bool,
    /// Kubelet versions that the assertion applies to.
    #[serde(default)]
    pub kubelet: KubeletRequirement,
    /// cgroup version that the assertion applies to.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupVersion>,
}

/// Rate at which a property holds. Each run of the case gives a list of `true` and `false`; all
/// runs are counted together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Rate")]
pub struct ExpectedRate {
    /// Description of the property, such as `pods whose containers have their own exit code`.
    pub what: String,
    /// A list of booleans, or one, as a CEL expression: `true` if the property holds.
    pub of: Expression,
    /// Number of runs of the case.
    #[serde(default = "default_runs")]
    pub runs: u32,
    /// Least share of `true`, such as 0.9; by default every observation must be `true`.
    #[serde(default)]
    pub at_least: Option<f64>,
}

impl ExpectedRate {
    /// Returns whether `right` of `total` observations are enough. `total` must not be 0.
    pub fn holds(&self, right: u64, total: u64) -> bool {
        // A quotient is rounded once, as the stated share is: 55 of 100 equals 0.55.
        self.at_least.map_or(right == total, |least| right as f64 / total as f64 >= least)
    }
}

fn default_runs() -> u32 {
    1
}

/// Deserializes any value, including `null`, as `Some`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Assertion {
    /// Returns whether a value satisfies all bounds.
    pub fn holds(&self, value: &Value) -> bool {
        let number = || value.as_f64();
        !self.absent
            && self.is.as_ref().is_none_or(|is| is_equal(is, value))
            && self.is_not.as_ref().is_none_or(|not| !is_equal(not, value))
            && self.one_of.as_ref().is_none_or(|all| all.iter().any(|one| is_equal(one, value)))
            && self
                .matches
                .as_ref()
                .is_none_or(|pattern| value.as_str().is_some_and(|text| pattern.is_match(text)))
            && self.at_least.is_none_or(|least| number().is_some_and(|number| number >= least))
            && self.at_most.is_none_or(|most| number().is_some_and(|number| number <= most))
            && (self.has_bound() || *value == Value::Bool(true))
    }

    /// Returns whether the assertion has a bound.
    pub fn has_bound(&self) -> bool {
        self.is.is_some()
            || self.is_not.is_some()
            || self.one_of.is_some()
            || self.matches.is_some()
            || self.at_least.is_some()
            || self.at_most.is_some()
            || self.absent
    }
}

/// Compares values; integers and floating-point numbers are equal if their values are, in lists and
/// maps, too.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_equal_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_equal =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| is_equal(value, other));
            one.len() == other.len() && one.iter().all(has_equal)
        }
        _ => one == other,
    }
}

/// Compares two integers exactly, and any other numbers as floating-point numbers.
fn is_equal_number(one: &Number, other: &Number) -> bool {
    if one.is_f64() || other.is_f64() {
        return one.as_f64() == other.as_f64();
    }
    (one.as_i64(), one.as_u64()) == (other.as_i64(), other.as_u64())
}

/// Describes the bounds.
impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![];
        words.extend(self.is.as_ref().map(display_value));
        words.extend(self.is_not.as_ref().map(|not| format!("not {}", display_value(not))));
        words.extend(
            self.one_of.as_ref().map(|all| {
                format!("one of {}", all.iter().map(display_value).collect::<Vec<_>>().join(", "))
            }),
        );
        words.extend(self.matches.as_ref().map(|pattern| format!("a string matching /{pattern}/")));
        words.extend(self.at_least.map(|least| format!("at least {least}")));
        words.extend(self.at_most.map(|most| format!("at most {most}")));
        if self.absent {
            words.push("absent".to_owned());
        }
        if words.is_empty() {
            words.push("true".to_owned());
        }
        f.write_str(&words.join(", "))
    }
}

/// Formats a value for reports: a string without quotes, any other value as JSON.
pub fn display_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_share_is_enough_from_the_stated_one_on() {
        for (right, of, least, expected) in [
            (55, 100, Some(0.55), true),
            (54, 100, Some(0.55), false),
            (7, 100, Some(0.07), true),
            (9, 10, Some(0.9), true),
            (9, 10, None, false),
            (10, 10, None, true),
        ] {
            let rate = serde_json::from_value(json!({"what": "w", "of": "true", "at-least": least}));
            let rate: ExpectedRate = rate.unwrap();
            assert_eq!(rate.holds(right, of), expected, "{right} of {of}, at least {least:?}");
        }
    }

    #[test]
    fn values_are_equal_if_their_numbers_are() {
        for (one, other, expected) in [
            (json!(1), json!(1.0), true),
            (json!(-1), json!(u64::MAX), false),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false),
            (json!(u64::MAX), json!(u64::MAX - 1), false),
            (json!({"a": [1], "b": null}), json!({"b": null, "a": [1.0]}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!({"a": 1}), json!({"a": 1, "b": 1}), false),
        ] {
            assert_eq!(is_equal(&one, &other), expected, "{one} {other}");
        }
    }
}
