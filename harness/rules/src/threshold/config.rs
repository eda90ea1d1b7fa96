//! A kubelet's threshold configuration: `ParseThresholdConfig`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::grace::{GraceError, parse_grace};
use super::rule::AmountError;
use super::signal::UnknownSignal;
use super::{Amount, Signal, Threshold};

/// The part of a KubeletConfiguration that makes thresholds, by signal name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdConfig {
    /// Hard thresholds.
    #[serde(default)]
    pub eviction_hard: BTreeMap<String, String>,
    /// Soft thresholds.
    #[serde(default)]
    pub eviction_soft: BTreeMap<String, String>,
    /// The grace of each soft threshold.
    #[serde(default)]
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// Minimum reclaims.
    #[serde(default)]
    pub eviction_minimum_reclaim: BTreeMap<String, String>,
    /// Which cgroups the kubelet limits. With `pods`, the default, hard memory thresholds count twice.
    #[serde(default)]
    pub enforce_node_allocatable: Option<Vec<String>>,
}

/// Why a kubelet with this configuration would not start. The texts are the kubelet's where it has its own.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThresholdError {
    /// No such signal.
    #[error(transparent)]
    Signal(#[from] UnknownSignal),
    /// Neither quantity nor percentage.
    #[error("{signal}: {why}")]
    Amount {
        /// The signal.
        signal: Signal,
        /// What is wrong.
        why: AmountError,
    },
    /// 0 or less.
    #[error("eviction threshold {signal} must be positive: {text}")]
    NotPositive {
        /// The signal.
        signal: Signal,
        /// The value.
        text: String,
    },
    /// Less than 0 %.
    #[error("eviction percentage threshold {signal} must be >= 0%: {text}")]
    PercentageNegative {
        /// The signal.
        signal: Signal,
        /// The value.
        text: String,
    },
    /// More than 100 %.
    #[error("eviction percentage threshold {signal} must be <= 100%: {text}")]
    PercentageTooLarge {
        /// The signal.
        signal: Signal,
        /// The value.
        text: String,
    },
    /// A soft threshold without grace.
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    NoGrace(Signal),
    /// A grace that is none.
    #[error(transparent)]
    Grace(#[from] GraceError),
    /// A minimum reclaim of 0 % or less.
    #[error("eviction percentage minimum reclaim {signal} must be positive: {text}")]
    ReclaimPercentage {
        /// The signal.
        signal: Signal,
        /// The value.
        text: String,
    },
    /// A minimum reclaim of less than 0.
    #[error("negative eviction minimum reclaim specified for {0}")]
    ReclaimNegative(Signal),
}

/// The thresholds of a configuration: hard, soft, then the allocatable duplicates of hard memory thresholds.
/// `0%` and `100%` mean no threshold.
///
/// # Errors
/// What makes a kubelet refuse to start; see [`ThresholdError`].
pub fn parse_config(config: &ThresholdConfig) -> Result<Vec<Threshold>, ThresholdError> {
    let mut thresholds = statements(&config.eviction_hard)?;
    let mut soft = statements(&config.eviction_soft)?;
    let mut graces = BTreeMap::new();
    for (signal, text) in &config.eviction_soft_grace_period {
        graces.insert(signal.parse::<Signal>()?, parse_grace(text)?);
    }
    let mut reclaims = BTreeMap::new();
    for (signal, text) in &config.eviction_minimum_reclaim {
        let signal = signal.parse()?;
        reclaims.insert(signal, reclaim(signal, text)?);
    }
    for threshold in &mut soft {
        let grace = graces.get(&threshold.signal).ok_or(ThresholdError::NoGrace(threshold.signal))?;
        threshold.grace = Some(*grace);
    }
    thresholds.append(&mut soft);
    for threshold in &mut thresholds {
        threshold.min_reclaim = reclaims.get(&threshold.signal).cloned();
    }
    if config
        .enforce_node_allocatable
        .as_ref()
        .is_none_or(|cgroups| cgroups.iter().any(|name| name == "pods"))
    {
        let duplicated =
            |threshold: &&Threshold| threshold.signal == Signal::MemoryAvailable && threshold.grace.is_none();
        let duplicates: Vec<_> = thresholds
            .iter()
            .filter(duplicated)
            .map(|threshold| Threshold { signal: Signal::AllocatableMemoryAvailable, ..threshold.clone() })
            .collect();
        thresholds.extend(duplicates);
    }
    Ok(thresholds)
}

fn statements(stated: &BTreeMap<String, String>) -> Result<Vec<Threshold>, ThresholdError> {
    let mut thresholds = vec![];
    for (signal, text) in stated {
        let signal = signal.parse()?;
        if text == "0%" || text == "100%" {
            continue;
        }
        let amount = Amount::read(text).map_err(|why| ThresholdError::Amount { signal, why })?;
        let text = text.clone();
        match &amount {
            Amount::Fraction(part) if *part < 0.0 => {
                return Err(ThresholdError::PercentageNegative { signal, text });
            }
            Amount::Fraction(part) if *part > 1.0 => {
                return Err(ThresholdError::PercentageTooLarge { signal, text });
            }
            Amount::Quantity(quantity) if quantity.is_negative() || quantity.is_zero() => {
                return Err(ThresholdError::NotPositive { signal, text });
            }
            _ => thresholds.push(Threshold::hard(signal, amount)),
        }
    }
    Ok(thresholds)
}

fn reclaim(signal: Signal, text: &str) -> Result<Amount, ThresholdError> {
    let amount = Amount::read(text).map_err(|why| ThresholdError::Amount { signal, why })?;
    match &amount {
        Amount::Fraction(part) if *part <= 0.0 => {
            Err(ThresholdError::ReclaimPercentage { signal, text: text.to_owned() })
        }
        Amount::Quantity(quantity) if quantity.is_negative() => Err(ThresholdError::ReclaimNegative(signal)),
        _ => Ok(amount),
    }
}
