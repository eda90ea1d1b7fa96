//! Nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field::{Errors, Path};
use super::{meta, names};

/// Checks a node: its metadata and taints.
pub(super) fn validate(node: &Value) -> Errors {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut errors = meta::validate(node, names::subdomain);
    let path = Path::new("spec").child("taints");
    let mut taken = BTreeSet::new();
    for (index, taint) in node["spec"]["taints"].as_array().into_iter().flatten().enumerate() {
        let path = path.index(index);
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        let (key, value, effect) = (text("key"), text("value"), text("effect"));
        names::qualified(key).iter().for_each(|wrong| errors.invalid(&path.child("key"), key, wrong));
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            errors.invalid(&path.child("value"), value, &wrong.join(";"));
        }
        match effect {
            "" => errors.required(&path.child("effect"), ""),
            effect if !EFFECTS.contains(&effect) => {
                errors.not_supported(&path.child("effect"), effect, &EFFECTS);
            }
            _ => {}
        }
        if !taken.insert((key, effect)) {
            errors.duplicate(&path, &taint.to_string());
        }
    }
    errors
}
