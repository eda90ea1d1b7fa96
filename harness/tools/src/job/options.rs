//! Options of a Job.

use std::str::FromStr;
use std::time::Duration;

use evictlab_cluster::JobName;
use serde::Serialize;

use super::node_affinity::NodeSelector;

/// Options of a Job that runs cases.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// Namespace and name.
    pub job: JobName,
    /// True if the manifest contains the namespace.
    pub with_namespace: bool,
    /// Image of evictlab.
    pub image: String,
    /// Number of indexes, each of which runs one shard of the selection.
    pub indexes: usize,
    /// Number of indexes at a time.
    pub parallelism: usize,
    /// Maximum number of retries of each index after a failure of the pod, the node or the harness.
    pub retries: u32,
    /// Time after which Kubernetes ends the Job.
    pub deadline: Duration,
    /// The nodes under test, which the pods of the Job keep off.
    pub node_selector: NodeSelector,
    /// Taints that the pods of the Job tolerate.
    pub tolerations: Vec<Toleration>,
    /// Priority class of the pods; `None` for one of the Job's own.
    pub priority_class: Option<String>,
    /// Arguments of `evictlab run` in each index, without backend, shard and directory.
    pub run: Vec<String>,
}

/// A text is not a toleration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not KEY[=VALUE][:EFFECT], such as dedicated=ci:NoSchedule")]
pub struct TolerationError(pub(crate) String);

/// A tolerated taint, as `KEY[=VALUE][:EFFECT]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Toleration {
    key: String,
    operator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
}

impl FromStr for Toleration {
    type Err = TolerationError;

    fn from_str(text: &str) -> Result<Self, TolerationError> {
        let (taint, effect) = match text.rsplit_once(':') {
            Some((taint, effect)) => (taint, Some(effect.to_owned())),
            None => (text, None),
        };
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (taint, None),
        };
        let is_effect =
            |effect: &String| ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect.as_str());
        if key.is_empty() || !effect.as_ref().is_none_or(is_effect) {
            return Err(TolerationError(text.to_owned()));
        }
        let operator = if value.is_some() { "Equal" } else { "Exists" };
        Ok(Self { key: key.to_owned(), operator, value, effect })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn parses_taints() {
        let rows = [
            ("a", Some(json!({"key": "a", "operator": "Exists"}))),
            (
                "x.io/a:NoSchedule",
                Some(json!({"key": "x.io/a", "operator": "Exists", "effect": "NoSchedule"})),
            ),
            (
                "a=b:NoExecute",
                Some(json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"})),
            ),
            ("a=b", Some(json!({"key": "a", "operator": "Equal", "value": "b"}))),
            ("a:Sometimes", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let parsed = text.parse::<Toleration>().ok();
            assert_eq!(
                parsed.map(|parsed| serde_json::to_value(parsed).unwrap_or(Value::Null)),
                expected,
                "{text}"
            );
        }
    }
}
