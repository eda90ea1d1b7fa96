//! Text to quantity: `ParseQuantity` of `apimachinery/pkg/api/resource/quantity.go`, oddities included.

use std::str::FromStr;

use super::arithmetic::{Format, Quantity, UNIT};

/// The text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Nothing there.
    #[error("an empty text is no quantity: write it like 200Mi, 1.5Gi or 500M")]
    Empty,
    /// Neither digit, point nor suffix.
    #[error(
        "{text:?} is no quantity: {found:?} at character {at} is neither part of a number nor of a suffix; write it like 200Mi, 1.5Gi or 500M"
    )]
    Shape {
        /// The text.
        text: String,
        /// The first character that fits nowhere.
        found: char,
        /// Its place, counted from 1.
        at: usize,
    },
    /// What follows the number is no suffix.
    #[error(
        "{text:?} is no quantity: {suffix:?} is no suffix; there are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and exponents such as e9"
    )]
    Suffix {
        /// The text.
        text: String,
        /// The suffix.
        suffix: String,
    },
    /// More than 1.7e29.
    #[error("{0:?} is more than any quantity here can hold (1.7e29)")]
    TooLarge(String),
}

/// The most digits that the quick way of the original takes for decimals; longer texts are printed canonically.
const QUICK_DIGITS: i64 = 18;

/// The greatest amount with a binary suffix, 2^63 − 1; more is read as this.
const BINARY_CAP: i128 = (i64::MAX as i128) * UNIT;

/// A quantity's text in its parts. `whole` has no leading zeros and is never empty.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl Quantity {
    /// Reads a text and keeps it for printing, whether or not it is canonical: a quantity as somebody printed it.
    ///
    /// # Errors
    /// As [`Quantity::from_str`].
    pub fn printed(text: &str) -> Result<Self, QuantityError> {
        Ok(Self { text: Some(text.to_owned()), ..text.parse()? })
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Reads a quantity. Finer than nanos is rounded away from zero; a binary amount over 2^63 − 1 is capped there.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        if text == "0" {
            return Ok(Self { text: Some(text.to_owned()), ..Self::ZERO });
        }
        let parts = split(text)?;
        let (format, exponent) = interpret(parts.suffix).ok_or_else(|| QuantityError::Suffix {
            text: text.to_owned(),
            suffix: parts.suffix.to_owned(),
        })?;
        let nanos = match format {
            Format::BinarySi => binary_nanos(&parts, exponent),
            _ => decimal_nanos(&parts, exponent).ok_or_else(|| QuantityError::TooLarge(text.to_owned()))?,
        };
        let quick = is_quick(&parts, format, exponent);
        let kept = quick && keeps_text(&parts, format, exponent);
        let format = if !quick && format == Format::BinarySi && nanos > 0 && nanos < UNIT {
            Format::DecimalSi
        } else {
            format
        };
        let nanos = if parts.negative { -nanos } else { nanos };
        Ok(Self { nanos, format, text: kept.then(|| text.to_owned()) })
    }
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = unsigned.trim_start_matches('0');
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let after =
        letters.strip_prefix(['-', '+']).unwrap_or(letters).trim_start_matches(|c: char| c.is_ascii_digit());
    if let Some(found) = after.chars().next() {
        let at = text.chars().count() - after.chars().count() + 1;
        return Err(QuantityError::Shape { text: text.to_owned(), found, at });
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix })
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// The format and the power, of 2 or of 10, that a suffix means.
fn interpret(suffix: &str) -> Option<(Format, i64)> {
    let (format, exponent) = match suffix {
        "" => (Format::DecimalSi, 0),
        "n" => (Format::DecimalSi, -9),
        "u" => (Format::DecimalSi, -6),
        "m" => (Format::DecimalSi, -3),
        "k" => (Format::DecimalSi, 3),
        "M" => (Format::DecimalSi, 6),
        "G" => (Format::DecimalSi, 9),
        "T" => (Format::DecimalSi, 12),
        "P" => (Format::DecimalSi, 15),
        "E" => (Format::DecimalSi, 18),
        "Ki" => (Format::BinarySi, 10),
        "Mi" => (Format::BinarySi, 20),
        "Gi" => (Format::BinarySi, 30),
        "Ti" => (Format::BinarySi, 40),
        "Pi" => (Format::BinarySi, 50),
        "Ei" => (Format::BinarySi, 60),
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
            (Format::DecimalExponent, i64::from(power))
        }
    };
    Some((format, exponent))
}

/// Whether the original reads it by its quick way, the only one that may keep the text.
fn is_quick(parts: &Parts<'_>, format: Format, exponent: i64) -> bool {
    let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
    match format {
        Format::BinarySi => fraction == 0 && 15 - whole - exponent * 3 / 10 > 0,
        _ => whole + fraction <= QUICK_DIGITS && exponent - fraction >= -9,
    }
}

fn keeps_text(parts: &Parts<'_>, format: Format, exponent: i64) -> bool {
    match format {
        Format::BinarySi => parts.whole.parse::<u64>().is_ok_and(|whole| whole % 8 != 0),
        _ => {
            let all = format!("{}{}", parts.whole, parts.fraction);
            (exponent - parts.fraction.len() as i64) % 3 == 0
                && !all.ends_with("000")
                && !all.starts_with('0')
        }
    }
}

fn binary_nanos(parts: &Parts<'_>, exponent: i64) -> i128 {
    let factor = UNIT << exponent;
    let whole = parts.whole.parse::<i128>().ok().and_then(|whole| whole.checked_mul(factor));
    whole
        .and_then(|whole| whole.checked_add(scaled(parts.fraction, factor)))
        .map_or(BINARY_CAP, |n| n.min(BINARY_CAP))
}

fn decimal_nanos(parts: &Parts<'_>, exponent: i64) -> Option<i128> {
    let power = exponent + 9;
    if power >= 0 {
        if parts.whole == "0" && parts.fraction.bytes().all(|digit| digit == b'0') {
            return Some(0);
        }
        // A long fraction leaves room for a power that the whole part could not bear.
        if parts.whole == "0" {
            let lead = parts.fraction.len() - parts.fraction.trim_start_matches('0').len();
            let taken = lead.min(usize::try_from(power).ok()?);
            let factor = 10i128.checked_pow(u32::try_from(power - taken as i64).ok()?)?;
            let rest = &parts.fraction[taken..];
            return fits(rest, factor).then(|| scaled(rest, factor));
        }
        let factor = 10i128.checked_pow(u32::try_from(power).ok()?)?;
        let whole = parts.whole.parse::<i128>().ok()?.checked_mul(factor)?;
        return if fits(parts.fraction, factor) {
            whole.checked_add(scaled(parts.fraction, factor))
        } else {
            None
        };
    }
    // Digits move behind the point; what is finer than a nano rounds up.
    let moved = usize::try_from(-power).ok()?;
    let all = format!("{}{}", parts.whole, parts.fraction);
    if moved >= parts.whole.len() {
        return Some(i128::from(all.bytes().any(|digit| digit != b'0')));
    }
    let (whole, fraction) = all.split_at(parts.whole.len() - moved);
    whole.parse::<i128>().ok()?.checked_add(scaled(fraction, 1))
}

/// Whether [`scaled`] can work with this factor without overflow.
fn fits(fraction: &str, factor: i128) -> bool {
    fraction.is_empty() || factor < i128::MAX / 10
}

/// `0.fraction × factor`, rounded up, exact for any number of digits.
fn scaled(fraction: &str, factor: i128) -> i128 {
    let (mut amount, mut inexact) = (0, false);
    for digit in fraction.bytes().rev() {
        let sum = i128::from(digit - b'0') * factor + amount;
        amount = sum / 10;
        inexact |= sum % 10 != 0;
    }
    amount + i128::from(inexact)
}
