//! Errors of a configuration.

use evictlab_rules::threshold::ThresholdConfigError;
use serde_json::Value;

const PATH: &str = "/var/lib/kubelet/config.yaml";

/// Reason why a kubelet does not start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be decoded.
    #[error(
        "failed to load kubelet config file, path: {PATH}, error: failed to load Kubelet config file {PATH}, error failed to decode: {0}"
    )]
    Decode(String),
    /// A feature gate is unknown or locked.
    #[error("failed to set feature gates from initial flags-based config: {0}")]
    FeatureGates(String),
    /// A value is invalid.
    #[error("failed to validate kubelet configuration, error: {0}, path: &TypeMeta{{Kind:,APIVersion:,}}")]
    Invalid(String),
    /// The hard eviction thresholds are invalid. They are parsed before the kubelet is created, for
    /// the reservation of node allocatable (`run` in `cmd/kubelet/app/server.go`).
    #[error("failed to run Kubelet: {0}")]
    HardThresholds(#[source] ThresholdConfigError),
    /// The soft eviction thresholds, their grace periods or the minimum reclaims are invalid
    /// (`NewMainKubelet`).
    #[error("failed to run Kubelet: failed to create kubelet: {0}")]
    Thresholds(#[from] ThresholdConfigError),
    /// The settings of log rotation are invalid.
    #[error(
        "failed to run Kubelet: failed to create kubelet: failed to initialize container log manager: {0}"
    )]
    Logs(String),
    /// The reserved resources exceed the capacity.
    #[error("invalid Node Allocatable configuration. {0}")]
    Allocatable(String),
}

impl ConfigError {
    /// Creates an error for a value with the wrong type.
    pub(super) fn kind(path: &str, own: &Value, value: &Value) -> Self {
        let found = match value {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            _ => "object",
        };
        let wanted = match own {
            Value::Bool(_) => "bool",
            Value::Number(_) => "int32",
            Value::String(_) => "string",
            Value::Array(_) => "[]string",
            _ => "map[string]string",
        };
        Self::Decode(format!(
            "json: cannot unmarshal {found} into Go struct field KubeletConfiguration.{path} of type {wanted}"
        ))
    }

    /// Creates an error for an invalid duration.
    pub(super) fn duration(value: &Value) -> Self {
        Self::Decode(format!("time: invalid duration {value}"))
    }

    /// Returns source position and message of the log line.
    pub(super) fn log_entry(&self) -> (&'static str, &'static str) {
        match self {
            Self::Allocatable(_) => ("kubelet.go:1583", "Failed to start ContainerManager"),
            _ => ("run.go:72", "command failed"),
        }
    }
}
