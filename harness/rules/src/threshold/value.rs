//! The value of a threshold: a quantity or a percentage of the capacity.

use std::fmt;

use crate::quantity::{Quantity, QuantityError};

/// The value of a threshold, `evictionapi.ThresholdValue`.
#[derive(Clone, Debug, PartialEq)]
pub enum ThresholdValue {
    /// An absolute quantity.
    Quantity(Quantity),
    /// A fraction of the capacity, 0.1 for 10 %. Single precision, as in the kubelet.
    Fraction(f32),
}

/// The text is neither a quantity nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdValueError {
    /// The text does not end with `%` and is not a quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The text before the `%` is not a number.
    #[error("invalid percentage {0:?}: expected a form like 10% or 10.5%")]
    Percentage(String),
}

impl ThresholdValue {
    /// Parses a percentage such as `10.5%`.
    ///
    /// # Errors
    /// Returns [`ThresholdValueError::Percentage`] unless the text is a number followed by `%`.
    pub fn percentage(text: &str) -> Result<Self, ThresholdValueError> {
        let number = text.trim_end_matches('%').parse::<f32>();
        match number {
            Ok(number) if text.ends_with('%') => Ok(Self::Fraction(number / 100.0)),
            _ => Err(ThresholdValueError::Percentage(text.to_owned())),
        }
    }

    /// Parses a percentage if the text ends with `%`, otherwise a quantity.
    pub(super) fn parse(text: &str) -> Result<Self, ThresholdValueError> {
        if text.ends_with('%') { Self::percentage(text) } else { Ok(Self::Quantity(text.parse()?)) }
    }

    /// Returns the quantity that the value stands for; `None` for a percentage without a capacity.
    ///
    /// The result of a percentage is in binary format for every signal and computed in single
    /// precision: 20 % of 1048576000 is 209715203. Source: `GetThresholdQuantity`.
    pub fn resolve(&self, capacity: Option<&Quantity>) -> Option<Quantity> {
        match self {
            Self::Quantity(quantity) => Some(quantity.clone()),
            Self::Fraction(fraction) => {
                let whole = capacity?.value() as f64 * f64::from(*fraction);
                Some(Quantity::from_bytes(whole as i64))
            }
        }
    }
}

impl fmt::Display for ThresholdValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(quantity) => quantity.fmt(f),
            Self::Fraction(fraction) => write!(f, "{}%", fraction * 100.0),
        }
    }
}
