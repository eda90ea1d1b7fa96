//! The fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1), by kubelet version, with
//! their defaults: `pkg/kubelet/apis/config/v1beta1/defaults.go`.

use std::time::Duration;

use evictlab_rules::{KubeletVersion, format_go_duration, parse_go_duration};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::error::ConfigError;
use super::file::map;
use crate::defect::{Defect, Defects};

/// Fields without a default that not every kubelet has, with their first minor.
const OPTIONAL_SINCE: [(u32, &str); 4] = [
    (29, "imageMaximumGCAge"),
    // With a default since 1.35.
    (33, "imagePullCredentialsVerificationPolicy"),
    (33, "preloadedImagesVerificationAllowlist"),
    (36, "tlsCurvePreferences"),
];

/// Numbers without a pointer in the Go type: 0 means the default.
const PLAIN_NUMBERS: [&str; 7] = [
    "port",
    "registryBurst",
    "eventBurst",
    "nodeLeaseDurationSeconds",
    "maxPods",
    "maxOpenFiles",
    "kubeAPIBurst",
];

/// Completes a file with the defaults. Returns the fields and the unknown keys of the file, which
/// the kubelet ignores.
///
/// # Errors
/// [`ConfigError`] for a value with the wrong type.
pub(super) fn complete(
    file: &Map<String, Value>,
    version: &KubeletVersion,
    defects: &Defects,
) -> Result<(Map<String, Value>, Vec<String>), ConfigError> {
    let mut all = defaults(version);
    if defects.has(Defect::ImageAgeUndefaulted) {
        all.insert("imageMinimumGCAge".to_owned(), json!("0s"));
    }
    if defects.has(Defect::LogFilesDefaultIsTwo) {
        all.insert("containerLogMaxFiles".to_owned(), json!(2));
    }
    let mut unknown = Vec::new();
    if file.get("evictionHard").is_none_or(Value::is_null) {
        all.insert("evictionHard".to_owned(), default_hard(version, defects));
    }
    let mut optional = optional(version);
    for (field, value) in file {
        match (all.get_mut(field), optional.get_mut(field)) {
            (Some(default), _) => put(field, default, value, field)?,
            (None, Some(zero)) => {
                put(field, zero, value, field)?;
                if !value.is_null() {
                    all.insert(field.clone(), value.clone());
                }
            }
            (None, None) => unknown.push(format!("unknown field {field:?}")),
        }
    }
    for (field, value) in &mut all {
        normalize(field, value);
    }
    // Follows `nodeStatusUpdateFrequency` if only that is set.
    let stated = |field: &str| file.get(field).and_then(length).filter(|length| !length.is_zero());
    if let Some(update) = stated("nodeStatusUpdateFrequency")
        && stated("nodeStatusReportFrequency").is_none()
    {
        all.insert("nodeStatusReportFrequency".to_owned(), json!(format_go_duration(update)));
    }
    if defects.has(Defect::TransitionZeroKept)
        && let Some(period) = file.get("evictionPressureTransitionPeriod").and_then(length)
    {
        all.insert("evictionPressureTransitionPeriod".to_owned(), json!(format_go_duration(period)));
    }
    let merges = all.get("mergeDefaultEvictionSettings") == Some(&json!(true));
    if (merges || defects.has(Defect::ThresholdDefaultsMerged))
        && let Some(Value::Object(hard)) = all.get_mut("evictionHard")
    {
        for (signal, amount) in map(default_hard(version, defects)) {
            if defects.has(Defect::MergedDefaultsWin) || !hard.contains_key(&signal) {
                hard.insert(signal, amount);
            }
        }
    }
    Ok((all, unknown))
}

/// Returns `eviction.DefaultEvictionHard`.
fn default_hard(version: &KubeletVersion, defects: &Defects) -> Value {
    let mut hard = json!({"imagefs.available": "15%", "memory.available": "100Mi", "nodefs.available": "10%",
        "nodefs.inodesFree": "5%"});
    if defects.has(Defect::NodefsDefaultHalved) {
        hard["nodefs.available"] = json!("5%");
    }
    if version.at_least(30) && !defects.has(Defect::ImagefsInodesUndefaulted) {
        hard["imagefs.inodesFree"] = json!("5%");
    }
    hard
}

/// Replaces a default with a value, unless it is the zero value of the Go type.
fn put(field: &str, default: &mut Value, value: &Value, path: &str) -> Result<(), ConfigError> {
    match (&mut *default, value) {
        (_, Value::Null) => Ok(()),
        (Value::Object(defaults), Value::Object(values)) => {
            for (key, value) in values {
                let path = format!("{path}.{key}");
                match defaults.get_mut(key) {
                    Some(default) => put(key, default, value, &path)?,
                    None => {
                        defaults.insert(key.clone(), value.clone());
                    }
                }
            }
            Ok(())
        }
        (Value::String(_), Value::String(text)) if text.is_empty() => Ok(()),
        (Value::String(own), Value::String(_)) if length_of(own).is_some() => {
            match value.as_str().and_then(signed_length_of) {
                Some(length) if length.is_zero() => {}
                Some(_) => *default = value.clone(),
                None => return Err(ConfigError::duration(value)),
            }
            Ok(())
        }
        (Value::Number(_), Value::Number(number))
            if number.as_i64() == Some(0) && PLAIN_NUMBERS.contains(&field) =>
        {
            Ok(())
        }
        (own, value) if std::mem::discriminant(own) == std::mem::discriminant(value) => {
            *default = value.clone();
            Ok(())
        }
        (own, value) => Err(ConfigError::kind(path, own, value)),
    }
}

/// Formats durations as Go does.
fn normalize(field: &str, value: &mut Value) {
    match value {
        Value::Object(fields) if !field.starts_with("eviction") && !field.ends_with("Reserved") => {
            fields.iter_mut().for_each(|(field, value)| normalize(field, value));
        }
        Value::String(text) => {
            if let Some(length) = signed_length_of(text).filter(|_| !field.ends_with("Size")) {
                let sign = if length.is_negative() { "-" } else { "" };
                *text = format!("{sign}{}", format_go_duration(length.unsigned_abs()));
            }
        }
        _ => {}
    }
}

fn length(value: &Value) -> Option<Duration> {
    length_of(value.as_str()?)
}

/// Parses a Go duration, which has a unit; `None` for a negative one.
pub(super) fn length_of(text: &str) -> Option<Duration> {
    Duration::try_from(signed_length_of(text)?).ok()
}

fn signed_length_of(text: &str) -> Option<SignedDuration> {
    let unit = text.ends_with(['s', 'm', 'h']);
    parse_go_duration(text).ok().filter(|_| unit || text == "0")
}

/// Returns the fields without a default, with the zero values of their types. `configz` serves them
/// only if they are set.
fn optional(version: &KubeletVersion) -> Map<String, Value> {
    // A test checks that the file is a map.
    let mut all: Map<String, Value> = serde_json::from_str(include_str!("optional.json")).unwrap_or_default();
    for (minor, field) in OPTIONAL_SINCE {
        if !version.at_least(minor) {
            all.remove(field);
        }
    }
    all
}

/// Returns the fields with a default.
pub(super) fn defaults(version: &KubeletVersion) -> Map<String, Value> {
    // A test checks that the file is a map.
    let mut all: Map<String, Value> = serde_json::from_str(include_str!("defaults.json")).unwrap_or_default();
    let since = [
        (30, "containerLogMaxWorkers", json!(1)),
        (30, "containerLogMonitorInterval", json!("10s")),
        (30, "podLogsDir", json!("/var/log/pods")),
        (31, "failCgroupV1", json!(version.at_least(35))),
        (32, "singleProcessOOMKill", json!(false)),
        (32, "crashLoopBackOff", json!({})),
        // `KubeletCrashLoopBackOffMax`, on by default since 1.35.
        (35, "crashLoopBackOff", json!({"maxContainerRestartPeriod": "5m0s"})),
        (33, "mergeDefaultEvictionSettings", json!(false)),
        (33, "userNamespaces", json!({"idsPerPod": 65536})),
        (35, "imagePullCredentialsVerificationPolicy", json!("NeverVerifyPreloadedImages")),
        (36, "memoryReservationPolicy", json!("None")),
    ];
    for (minor, field, value) in since {
        if version.at_least(minor) {
            all.insert(field.to_owned(), value);
        }
    }
    all
}
