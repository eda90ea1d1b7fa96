//! The threshold configuration of a kubelet: `ParseThresholdConfig`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::{Signal, Threshold, ThresholdValue, ThresholdValueError, UnknownSignalError};
use crate::KubeletVersion;
use crate::go_duration::{GoDurationError, parse_go_duration};

/// The fields of a KubeletConfiguration that define thresholds. Maps are keyed by signal name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdConfig {
    /// Hard thresholds, `evictionHard`.
    #[serde(default)]
    pub eviction_hard: BTreeMap<String, String>,
    /// Soft thresholds, `evictionSoft`.
    #[serde(default)]
    pub eviction_soft: BTreeMap<String, String>,
    /// Grace periods of soft thresholds, `evictionSoftGracePeriod`.
    #[serde(default)]
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// Minimum reclaims, `evictionMinimumReclaim`.
    #[serde(default)]
    pub eviction_minimum_reclaim: BTreeMap<String, String>,
    /// Cgroups whose limits the kubelet enforces, `enforceNodeAllocatable`. With `pods`, the
    /// default, every hard memory threshold also applies to node allocatable.
    #[serde(default)]
    pub enforce_node_allocatable: Option<Vec<String>>,
}

/// A configuration that a kubelet refuses to start with. Messages are the kubelet's own, except for
/// values that do not parse.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThresholdConfigError {
    /// The signal does not exist.
    #[error(transparent)]
    Signal(#[from] UnknownSignalError),
    /// The value is neither a quantity nor a percentage.
    #[error("{signal}: {source}")]
    Value {
        /// Signal.
        signal: Signal,
        /// Parse error.
        source: ThresholdValueError,
    },
    /// The quantity is not greater than 0.
    #[error("eviction threshold {signal} must be positive: {text}")]
    NotPositive {
        /// Signal.
        signal: Signal,
        /// Configured value in canonical form.
        text: String,
    },
    /// The percentage is less than 0 %.
    #[error("eviction percentage threshold {signal} must be >= 0%: {text}")]
    PercentageNegative {
        /// Signal.
        signal: Signal,
        /// Configured value.
        text: String,
    },
    /// The percentage is greater than 100 %.
    #[error("eviction percentage threshold {signal} must be <= 100%: {text}")]
    PercentageTooLarge {
        /// Signal.
        signal: Signal,
        /// Configured value.
        text: String,
    },
    /// A soft threshold does not have a grace period.
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    MissingGracePeriod(Signal),
    /// A grace period does not parse.
    #[error(transparent)]
    GracePeriod(#[from] GracePeriodError),
    /// A minimum reclaim is 0 % or less.
    #[error("eviction percentage minimum reclaim {signal} must be positive: {text}")]
    MinReclaimPercentage {
        /// Signal.
        signal: Signal,
        /// Configured value.
        text: String,
    },
    /// A minimum reclaim is less than 0.
    #[error("negative eviction minimum reclaim specified for {0}")]
    MinReclaimNegative(Signal),
}

/// Returns the thresholds of a configuration that a kubelet of any version accepts: hard ones, soft
/// ones, then a copy of each hard memory threshold for node allocatable. The values `0%` and `100%`
/// disable a threshold. A soft threshold with a grace period of 0 is a hard one
/// (`isHardEvictionThreshold` in `helpers.go`).
///
/// # Errors
/// Returns an error if no kubelet would start with the configuration.
pub fn parse_threshold_config(config: &ThresholdConfig) -> Result<Vec<Threshold>, ThresholdConfigError> {
    Parser { version: None }.parse(config)
}

/// Returns the thresholds of a configuration for a kubelet version, as [`parse_threshold_config`]
/// does.
///
/// # Errors
/// Returns an error if a kubelet of the version would refuse to start with the configuration. This
/// includes signals that the version does not have, also with a value that disables them
/// (`parseThresholdStatement` in `helpers.go`).
pub fn parse_threshold_config_of(
    version: &KubeletVersion,
    config: &ThresholdConfig,
) -> Result<Vec<Threshold>, ThresholdConfigError> {
    Parser { version: Some(version) }.parse(config)
}

/// Parser of a configuration, for a version or for all of them.
struct Parser<'a> {
    version: Option<&'a KubeletVersion>,
}

impl Parser<'_> {
    fn parse(&self, config: &ThresholdConfig) -> Result<Vec<Threshold>, ThresholdConfigError> {
        let mut thresholds = self.values(&config.eviction_hard)?;
        let soft = self.values(&config.eviction_soft)?;
        let mut grace_periods = BTreeMap::new();
        for (signal, text) in &config.eviction_soft_grace_period {
            grace_periods.insert(self.signal(signal)?, parse_grace_period(text)?);
        }
        let mut min_reclaims = BTreeMap::new();
        for (signal, text) in &config.eviction_minimum_reclaim {
            let signal = self.signal(signal)?;
            min_reclaims.insert(signal, parse_min_reclaim(signal, text)?);
        }
        for threshold in soft {
            let signal = threshold.signal;
            let grace = grace_periods.get(&signal).ok_or(ThresholdConfigError::MissingGracePeriod(signal))?;
            thresholds.push(Threshold { grace: (!grace.is_zero()).then_some(*grace), ..threshold });
        }
        for threshold in &mut thresholds {
            threshold.min_reclaim = min_reclaims.get(&threshold.signal).cloned();
        }
        if enforces_pods(config) {
            let allocatable: Vec<_> = thresholds.iter().filter_map(for_node_allocatable).collect();
            thresholds.extend(allocatable);
        }
        Ok(thresholds)
    }

    /// Parses the name of a signal that the version has (`validSignal`).
    fn signal(&self, name: &str) -> Result<Signal, UnknownSignalError> {
        let signal: Signal = name.parse()?;
        let exists = self.version.is_none_or(|version| signal.exists_in(version));
        if exists { Ok(signal) } else { Err(UnknownSignalError(name.to_owned())) }
    }

    /// Parses `evictionHard` or `evictionSoft` into thresholds without grace period.
    fn values(&self, values: &BTreeMap<String, String>) -> Result<Vec<Threshold>, ThresholdConfigError> {
        let mut thresholds = vec![];
        for (signal, text) in values {
            let signal = self.signal(signal)?;
            if text == "0%" || text == "100%" {
                continue;
            }
            thresholds.push(Threshold::hard(signal, parse_value(signal, text)?));
        }
        Ok(thresholds)
    }
}

fn enforces_pods(config: &ThresholdConfig) -> bool {
    let cgroups = config.enforce_node_allocatable.as_ref();
    cgroups.is_none_or(|cgroups| cgroups.iter().any(|name| name == "pods"))
}

/// Returns the copy of a hard memory threshold for node allocatable, `None` for other thresholds.
fn for_node_allocatable(threshold: &Threshold) -> Option<Threshold> {
    let copied = threshold.signal == Signal::MemoryAvailable && threshold.grace.is_none();
    copied.then(|| Threshold { signal: Signal::AllocatableMemoryAvailable, ..threshold.clone() })
}

/// Parses the value of a threshold, which must be positive.
fn parse_value(signal: Signal, text: &str) -> Result<ThresholdValue, ThresholdConfigError> {
    let value =
        ThresholdValue::parse(text).map_err(|source| ThresholdConfigError::Value { signal, source })?;
    let text = text.to_owned();
    match &value {
        ThresholdValue::Fraction(part) if *part < 0.0 => {
            Err(ThresholdConfigError::PercentageNegative { signal, text })
        }
        ThresholdValue::Fraction(part) if *part > 1.0 => {
            Err(ThresholdConfigError::PercentageTooLarge { signal, text })
        }
        ThresholdValue::Quantity(quantity) if quantity.is_negative() || quantity.is_zero() => {
            Err(ThresholdConfigError::NotPositive { signal, text: quantity.to_string() })
        }
        _ => Ok(value),
    }
}

fn parse_min_reclaim(signal: Signal, text: &str) -> Result<ThresholdValue, ThresholdConfigError> {
    let value =
        ThresholdValue::parse(text).map_err(|source| ThresholdConfigError::Value { signal, source })?;
    match &value {
        ThresholdValue::Fraction(part) if *part <= 0.0 => {
            Err(ThresholdConfigError::MinReclaimPercentage { signal, text: text.to_owned() })
        }
        ThresholdValue::Quantity(quantity) if quantity.is_negative() => {
            Err(ThresholdConfigError::MinReclaimNegative(signal))
        }
        _ => Ok(value),
    }
}

/// The text is not a grace period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GracePeriodError {
    /// The text is not a Go duration.
    #[error(transparent)]
    InvalidDuration(#[from] GoDurationError),
    /// The duration is negative. The message is the kubelet's own.
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    Negative(String),
}

/// Parses a grace period, which is a duration of Go. Accepts 0 (`parseGracePeriods` in
/// `helpers.go`).
///
/// # Errors
/// Returns an error for texts that are not a Go duration and for negative durations.
pub fn parse_grace_period(text: &str) -> Result<Duration, GracePeriodError> {
    let period = parse_go_duration(text)?;
    if period.is_negative() {
        return Err(GracePeriodError::Negative(text.to_owned()));
    }
    Ok(period.unsigned_abs())
}
