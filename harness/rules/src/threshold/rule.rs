//! A threshold and when it is met.

use std::fmt;
use std::time::Duration;

use super::{Observation, Signal};
use crate::quantity::{Quantity, QuantityError};

/// How much must be left: so much, or such a part of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// So much.
    Quantity(Quantity),
    /// A part of the capacity, 0.1 for 10 %; in single precision, as the kubelet has it.
    Fraction(f32),
}

/// The text before the `%` is no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no percentage: write it like 10% or 10.5%")]
pub struct PercentageError(pub String);

/// A threshold: met when less than `amount` is left. Hard unless it has a grace.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The signal.
    pub signal: Signal,
    /// What must be left.
    pub amount: Amount,
    /// How long a soft threshold must have been met before the kubelet acts.
    pub grace: Option<Duration>,
    /// How much more must be left before pressure counts as over.
    pub min_reclaim: Option<Amount>,
}

impl Amount {
    /// Reads a percentage such as `10.5%`.
    ///
    /// # Errors
    /// What is no number before a single `%`.
    pub fn percentage(text: &str) -> Result<Self, PercentageError> {
        let number = text.trim_end_matches('%').parse::<f32>();
        match number {
            Ok(number) if text.ends_with('%') => Ok(Self::Fraction(number / 100.0)),
            _ => Err(PercentageError(text.to_owned())),
        }
    }

    /// Reads a quantity that may be a percentage.
    pub(super) fn read(text: &str) -> Result<Self, AmountError> {
        if text.ends_with('%') { Ok(Self::percentage(text)?) } else { Ok(Self::Quantity(text.parse()?)) }
    }

    /// The quantity it comes to. A percentage is binary whatever it is of, and its arithmetic is single precision:
    /// 20% of 1048576000 are 209715203.
    pub fn of(&self, capacity: Option<&Quantity>) -> Option<Quantity> {
        match self {
            Self::Quantity(quantity) => Some(quantity.clone()),
            Self::Fraction(fraction) => {
                let whole = capacity?.value() as f64 * f64::from(*fraction);
                Some(Quantity::from_bytes(whole as i64))
            }
        }
    }
}

/// Neither quantity nor percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// No quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// No percentage.
    #[error(transparent)]
    Percentage(#[from] PercentageError),
}

impl Threshold {
    /// A hard threshold without minimum reclaim.
    pub fn hard(signal: Signal, amount: Amount) -> Self {
        Self { signal, amount, grace: None, min_reclaim: None }
    }

    /// Whether what is left is less than the threshold (plus the minimum reclaim, once pressure has been declared).
    /// Exactly as much is enough.
    pub fn is_met(&self, observation: &Observation, with_min_reclaim: bool) -> bool {
        let capacity = observation.capacity.as_ref();
        let Some(mut needed) = self.amount.of(capacity) else { return false };
        if let Some(reclaim) = self.min_reclaim.as_ref().filter(|_| with_min_reclaim)
            && let Some(reclaim) = reclaim.of(capacity)
        {
            needed = needed + &reclaim;
        }
        needed > observation.available
    }
}

/// Puts the thresholds on memory first, as the kubelet picks what to reclaim; the others keep their order, which
/// in the kubelet is arbitrary.
pub fn sort_for_eviction(thresholds: &mut [Threshold]) {
    let memory = |signal| matches!(signal, Signal::MemoryAvailable | Signal::AllocatableMemoryAvailable);
    thresholds.sort_by_key(|threshold| !memory(threshold.signal));
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(quantity) => quantity.fmt(f),
            Self::Fraction(fraction) => write!(f, "{}%", fraction * 100.0),
        }
    }
}
