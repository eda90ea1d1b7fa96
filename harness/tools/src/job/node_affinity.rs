//! The label selector of the nodes under test, and the node affinity that keeps pods off them.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// A part of a text is not a requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a requirement on a label, such as pool=evictions")]
pub struct NodeSelectorError(pub(crate) String);

/// A label selector, such as `pool=evictions,!gpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSelector {
    text: String,
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    is_met: bool,
    /// Values of which the label has one; empty if the label must exist.
    values: Vec<String>,
}

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for NodeSelector {
    type Err = NodeSelectorError;

    fn from_str(text: &str) -> Result<Self, NodeSelectorError> {
        let requirements: Vec<Requirement> =
            split(text).into_iter().map(Requirement::parse).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), requirements })
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_separator = |character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    };
    text.split(is_separator).collect()
}

impl Requirement {
    fn parse(part: &str) -> Result<Self, NodeSelectorError> {
        let part = part.trim();
        let (key, is_met, values) = if let Some(key) = part.strip_prefix('!') {
            (key, false, vec![])
        } else if let Some((key, value)) = part.split_once("!=") {
            (key, false, vec![value])
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (key, true, vec![value])
        } else if let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
            match head.split_whitespace().collect::<Vec<_>>()[..] {
                [key, "in"] => (key, true, values.split(',').collect()),
                [key, "notin"] => (key, false, values.split(',').collect()),
                _ => return Err(NodeSelectorError(part.to_owned())),
            }
        } else {
            (part, true, vec![])
        };
        let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let (key, values) = (key.trim(), values.into_iter().map(str::trim).collect::<Vec<_>>());
        if key.is_empty() || !is_name(key) || !values.iter().copied().all(is_name) {
            return Err(NodeSelectorError(part.to_owned()));
        }
        Ok(Self { key: key.to_owned(), is_met, values: values.into_iter().map(str::to_owned).collect() })
    }

    /// The requirement that is met if this one is not.
    fn inverse(&self) -> Value {
        let Self { key, is_met, values } = self;
        match (is_met, values.is_empty()) {
            (true, true) => json!({"key": key, "operator": "DoesNotExist"}),
            (false, true) => json!({"key": key, "operator": "Exists"}),
            (true, false) => json!({"key": key, "operator": "NotIn", "values": values}),
            (false, false) => json!({"key": key, "operator": "In", "values": values}),
        }
    }
}

impl NodeSelector {
    /// Node affinity of pods that must not run on the selected nodes. A node is not selected if it
    /// does not meet one of the requirements, and one of the terms of an affinity is enough.
    pub(super) fn anti_affinity(&self) -> Value {
        let terms: Vec<Value> = self
            .requirements
            .iter()
            .map(|requirement| json!({"matchExpressions": [requirement.inverse()]}))
            .collect();
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_pods_off_the_selected_nodes() {
        let expression = |key: &str, operator: &str, values: Value| json!({"key": key, "operator": operator, "values": values});
        let rows = [
            ("pool=evictions", vec![expression("pool", "NotIn", json!(["evictions"]))]),
            ("a==b", vec![expression("a", "NotIn", json!(["b"]))]),
            ("a!=b", vec![expression("a", "In", json!(["b"]))]),
            ("x.io/test", vec![json!({"key": "x.io/test", "operator": "DoesNotExist"})]),
            ("!gpu", vec![json!({"key": "gpu", "operator": "Exists"})]),
            (
                "a in (b, c), d notin (e)",
                vec![expression("a", "NotIn", json!(["b", "c"])), expression("d", "In", json!(["e"]))],
            ),
        ];
        for (text, expected) in rows {
            let affinity = text.parse::<NodeSelector>().unwrap().anti_affinity();
            let terms = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
            let terms: Vec<&Value> =
                terms.as_array().unwrap().iter().map(|term| &term["matchExpressions"][0]).collect();
            assert_eq!(terms, expected.iter().collect::<Vec<_>>(), "{text}");
        }
        for text in ["", "a b", "a of (b)", "a=b c", ",", "a in (b"] {
            assert!(text.parse::<NodeSelector>().is_err(), "{text}");
        }
    }
}
