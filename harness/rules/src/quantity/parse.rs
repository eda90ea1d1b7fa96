//! `ParseQuantity` of `apimachinery/pkg/api/resource/quantity.go`, oddities included.

use std::str::FromStr;

use super::value::{Format, Quantity, UNIT};

/// The text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is empty.
    #[error("invalid quantity \"\": expected a form like 200Mi, 1.5Gi or 500M")]
    Empty,
    /// A character can neither be part of the number nor of a suffix.
    #[error(
        "invalid quantity {text:?}: unexpected {character:?} at character {position}, expected a form like 200Mi, \
         1.5Gi or 500M"
    )]
    UnexpectedCharacter {
        /// The whole text.
        text: String,
        /// The first character that fits nowhere.
        character: char,
        /// Its position, counted from 1.
        position: usize,
    },
    /// The text after the number is not a suffix.
    #[error(
        "invalid quantity {text:?}: unknown suffix {suffix:?}, expected one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, \
         or an exponent such as e9"
    )]
    UnknownSuffix {
        /// The whole text.
        text: String,
        /// The text after the number.
        suffix: String,
    },
    /// The number is greater than 1.7e29 and does not fit into a [`Quantity`].
    #[error("invalid quantity {0:?}: the number is greater than 1.7e29")]
    TooLarge(String),
}

/// Longest decimal number, in digits, that apimachinery parses on its fast path
/// (`maxInt64Factors`). Longer texts print in the canonical form.
const FAST_PATH_DIGITS: i64 = 18;

/// Greatest number with a binary suffix, 2^63 − 1. Greater numbers are capped to it.
const BINARY_CAP: i128 = (i64::MAX as i128) * UNIT;

/// The parts of a quantity's text. `whole` has no leading zeros and is never empty.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl Quantity {
    /// Parses a text and keeps the text for printing, canonical or not: a quantity out of a message
    /// prints as the kubelet printed it.
    ///
    /// # Errors
    /// Returns the errors of [`Quantity::from_str`].
    pub fn parse_verbatim(text: &str) -> Result<Self, QuantityError> {
        Ok(Self { text: Some(text.to_owned()), ..text.parse()? })
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Parses a quantity. Rounds fractions of a nano away from zero and caps numbers with a binary
    /// suffix at 2^63 − 1.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        if text == "0" {
            return Ok(Self { text: Some(text.to_owned()), ..Self::ZERO });
        }
        let parts = split(text)?;
        let (format, exponent) = parse_suffix(parts.suffix).ok_or_else(|| QuantityError::UnknownSuffix {
            text: text.to_owned(),
            suffix: parts.suffix.to_owned(),
        })?;
        let nanos = match format {
            Format::BinarySi => binary_nanos(&parts, exponent),
            _ => decimal_nanos(&parts, exponent).ok_or_else(|| QuantityError::TooLarge(text.to_owned()))?,
        };
        let fast_path = is_fast_path(&parts, format, exponent);
        let kept = fast_path && keeps_text(&parts, format, exponent);
        let format = if !fast_path && format == Format::BinarySi && nanos > 0 && nanos < UNIT {
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
    let (whole, rest) = rest.split_at(count_digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(count_digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let after =
        letters.strip_prefix(['-', '+']).unwrap_or(letters).trim_start_matches(|c: char| c.is_ascii_digit());
    if let Some(character) = after.chars().next() {
        let position = text.chars().count() - after.chars().count() + 1;
        return Err(QuantityError::UnexpectedCharacter { text: text.to_owned(), character, position });
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix })
}

fn count_digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Returns the format of a suffix and its exponent, to base 2 for a binary suffix and to base 10
/// otherwise.
fn parse_suffix(suffix: &str) -> Option<(Format, i64)> {
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

/// Returns whether apimachinery takes its fast path, the only one that may keep the text.
fn is_fast_path(parts: &Parts<'_>, format: Format, exponent: i64) -> bool {
    let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
    match format {
        Format::BinarySi => fraction == 0 && 15 - whole - exponent * 3 / 10 > 0,
        _ => whole + fraction <= FAST_PATH_DIGITS && exponent - fraction >= -9,
    }
}

/// Returns whether the fast path keeps the text because it is canonical.
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

/// Returns the nanos of a number with a binary suffix, at most [`BINARY_CAP`].
fn binary_nanos(parts: &Parts<'_>, exponent: i64) -> i128 {
    let factor = UNIT << exponent;
    let whole = parts.whole.parse::<i128>().ok().and_then(|whole| whole.checked_mul(factor));
    whole
        .and_then(|whole| whole.checked_add(scaled(parts.fraction, factor)))
        .map_or(BINARY_CAP, |n| n.min(BINARY_CAP))
}

/// Returns the nanos of a decimal number, or `None` if they overflow.
fn decimal_nanos(parts: &Parts<'_>, exponent: i64) -> Option<i128> {
    let power = exponent + 9;
    if power >= 0 {
        if parts.whole == "0" && parts.fraction.bytes().all(|digit| digit == b'0') {
            return Some(0);
        }
        // Leading zeros of the fraction use up part of the exponent: `0.001e39` does not overflow.
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
    // A negative exponent moves digits behind the decimal point; fractions of a nano round up.
    let moved = usize::try_from(-power).ok()?;
    let all = format!("{}{}", parts.whole, parts.fraction);
    if moved >= parts.whole.len() {
        return Some(i128::from(all.bytes().any(|digit| digit != b'0')));
    }
    let (whole, fraction) = all.split_at(parts.whole.len() - moved);
    whole.parse::<i128>().ok()?.checked_add(scaled(fraction, 1))
}

/// Returns whether [`scaled`] does not overflow with this factor.
fn fits(fraction: &str, factor: i128) -> bool {
    fraction.is_empty() || factor < i128::MAX / 10
}

/// Returns `0.fraction × factor`, rounded up, exact for any number of digits.
fn scaled(fraction: &str, factor: i128) -> i128 {
    let (mut amount, mut inexact) = (0, false);
    for digit in fraction.bytes().rev() {
        let sum = i128::from(digit - b'0') * factor + amount;
        amount = sum / 10;
        inexact |= sum % 10 != 0;
    }
    amount + i128::from(inexact)
}
