//! What must be true of what was seen: values asked for in CEL, each with its bound.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::values::{KubeletReq, Matching};
use crate::cel::Expression;

/// One fact: a value, and what it must be. With no bound it must be `true`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fact {
    /// What it is, for a person: `phase of hog`. A known bug that states the same `what` takes this fact's place.
    pub what: String,
    /// The value, in CEL.
    pub value: Expression,
    /// It is this.
    #[serde(default, deserialize_with = "there")]
    pub is: Option<Value>,
    /// It is not this.
    #[serde(default, deserialize_with = "there")]
    pub is_not: Option<Value>,
    /// It is one of these.
    #[serde(default)]
    pub one_of: Option<Vec<Value>>,
    /// It is a text that this regular expression matches somewhere.
    #[serde(default)]
    pub matches: Option<Matching>,
    /// It is a number, and at least this.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// It is a number, and at most this.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// It is not there at all.
    #[serde(default)]
    pub absent: bool,
    /// The kubelets that it holds for.
    #[serde(default)]
    pub kubelet: KubeletReq,
    /// The cgroup version that it holds for.
    #[serde(default)]
    pub cgroup: Option<Cgroup>,
}

/// A version of the kernel's control groups.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cgroup {
    /// Version 1.
    V1,
    /// Version 2, the unified hierarchy.
    V2,
}

/// How often something is right: a list of `true` and `false` of each run of the case, counted over all its runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rate {
    /// What is counted, for a person: `pods whose containers have their own exit code`.
    pub what: String,
    /// A list of booleans, or one, in CEL: `true` for each that is right.
    pub of: Expression,
    /// How often the case is run for it.
    #[serde(default = "once")]
    pub runs: u32,
}

fn once() -> u32 {
    1
}

/// `null` is a value, too.
fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Cgroup {
    /// As it is written: `v1`, `v2`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

impl Fact {
    /// Whether a value is what it must be.
    pub fn holds(&self, value: &Value) -> bool {
        let number = || value.as_f64();
        !self.absent
            && self.is.as_ref().is_none_or(|is| same(is, value))
            && self.is_not.as_ref().is_none_or(|not| !same(not, value))
            && self.one_of.as_ref().is_none_or(|all| all.iter().any(|one| same(one, value)))
            && self
                .matches
                .as_ref()
                .is_none_or(|matching| value.as_str().is_some_and(|text| matching.is_match(text)))
            && self.at_least.is_none_or(|least| number().is_some_and(|number| number >= least))
            && self.at_most.is_none_or(|most| number().is_some_and(|number| number <= most))
            && (self.has_bound() || *value == Value::Bool(true))
    }

    /// Whether it says what the value must be.
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

/// Numbers are the same whether they are whole or not.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other,
    }
}

/// What the value must be, in words.
impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![];
        words.extend(self.is.as_ref().map(shown));
        words.extend(self.is_not.as_ref().map(|not| format!("not {}", shown(not))));
        words.extend(
            self.one_of
                .as_ref()
                .map(|all| format!("one of {}", all.iter().map(shown).collect::<Vec<_>>().join(", "))),
        );
        words.extend(self.matches.as_ref().map(|matching| format!("a text like /{matching}/")));
        words.extend(self.at_least.map(|least| format!("at least {least}")));
        words.extend(self.at_most.map(|most| format!("at most {most}")));
        if self.absent {
            words.push("not there".to_owned());
        }
        if words.is_empty() {
            words.push("true".to_owned());
        }
        f.write_str(&words.join(", "))
    }
}

/// A value as a person reads it: a text without quotes, everything else as JSON.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
