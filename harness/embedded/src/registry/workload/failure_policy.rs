//! A job's `podFailurePolicy`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::{Errors, Path};
use super::super::names;
use super::default;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Fills a job's in: a condition that is looked for is looked for as true.
pub(super) fn fill(spec: &mut Value) {
    for rule in
        spec.pointer_mut("/podFailurePolicy/rules").and_then(Value::as_array_mut).into_iter().flatten()
    {
        let patterns = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for pattern in patterns.into_iter().flatten() {
            default(pattern, "status", json!("True"));
        }
    }
}

/// Checks a job's (`validatePodFailurePolicy`), which may be absent.
pub(super) fn validate(spec: &Value, path: &Path, errors: &mut Errors) {
    let path = path.child("rules");
    let containers = ["containers", "initContainers"].map(|list| &spec["template"]["spec"][list]);
    let containers = containers.into_iter().flat_map(|list| list.as_array().into_iter().flatten());
    let names: BTreeSet<&str> = containers.filter_map(|container| container["name"].as_str()).collect();
    let rules = spec["podFailurePolicy"]["rules"].as_array().into_iter().flatten();
    for (index, rule) in rules.enumerate() {
        let path = path.index(index);
        action(spec, rule, &path.child("action"), errors);
        let (codes, conditions) = (&rule["onExitCodes"], &rule["onPodConditions"]);
        if codes.is_object() {
            exit_codes(codes, &path.child("onExitCodes"), &names, errors);
        }
        let patterns = conditions.as_array().map_or(&[][..], Vec::as_slice);
        for (index, pattern) in patterns.iter().enumerate() {
            condition(pattern, &path.child("onPodConditions").index(index), errors);
        }
        let both = "specifying both OnExitCodes and OnPodConditions is not supported";
        let none = "specifying one of OnExitCodes and OnPodConditions is required";
        match (codes.is_object(), patterns.is_empty()) {
            (true, false) => errors.unfit(&path, both),
            (false, true) => errors.unfit(&path, none),
            _ => {}
        }
    }
}

fn action(spec: &Value, rule: &Value, path: &Path, errors: &mut Errors) {
    match rule["action"].as_str().unwrap_or_default() {
        "" => errors.required(path, &format!("valid values: {}", listed(&ACTIONS))),
        action @ "FailIndex" if spec["backoffLimitPerIndex"].is_null() => {
            errors.invalid(path, action, "requires the backoffLimitPerIndex to be set");
        }
        action if !ACTIONS.contains(&action) => errors.not_supported(path, action, &ACTIONS),
        _ => {}
    }
}

fn exit_codes(wanted: &Value, path: &Path, containers: &BTreeSet<&str>, errors: &mut Errors) {
    let operator = wanted["operator"].as_str().unwrap_or_default();
    match operator {
        "" => {
            errors.required(&path.child("operator"), &format!("valid values: {}", listed(&OPERATORS)));
        }
        other if !OPERATORS.contains(&other) => {
            errors.not_supported(&path.child("operator"), other, &OPERATORS);
        }
        _ => {}
    }
    if let Some(name) = wanted["containerName"].as_str().filter(|name| !containers.contains(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&path.child("containerName"), name, why);
    }
    let path = path.child("values");
    let values: Vec<i64> =
        wanted["values"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        errors.invalid(&path, json!(values), "at least one value is required");
    }
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            errors.invalid(&path.index(index), *value, "must not be 0 for the In operator");
        }
        if !seen.insert(value) {
            errors.duplicate(&path.index(index), &value.to_string());
        }
    }
    if !values.is_sorted() {
        errors.invalid(&path, json!(values), "must be ordered");
    }
}

fn condition(pattern: &Value, path: &Path, errors: &mut Errors) {
    let (kind, status) = (&pattern["type"], &pattern["status"]);
    let kind = kind.as_str().unwrap_or_default();
    names::qualified(kind).iter().for_each(|wrong| errors.invalid(&path.child("type"), kind, wrong));
    if let Some(status) = status.as_str().filter(|status| !STATUSES.contains(status)) {
        errors.not_supported(&path.child("status"), status, &STATUSES);
    }
}

/// As Go prints a list of quoted words.
fn listed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}
