//! Values of options: sizes, durations, whole numbers and addresses.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use evictlab_rules::quantity::Quantity;

/// A number of bytes, written as a Kubernetes quantity.
#[derive(Clone, Debug)]
pub(crate) struct ByteSize {
    /// The text from the command line.
    pub(crate) text: String,
    /// The size in bytes.
    pub(crate) bytes: u64,
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let quantity: Quantity = text.parse().map_err(|error| format!("{error}"))?;
        match u64::try_from(quantity.value()) {
            Ok(bytes) if bytes > 0 => Ok(Self { text: text.to_owned(), bytes }),
            _ => Err("a size must be greater than 0".to_owned()),
        }
    }
}

/// Returns the arguments of an option with a value. A value that begins with a dash is part of the
/// same argument: on its own, it would be another option.
pub(crate) fn option_args(name: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') {
        vec![format!("{name}={value}")]
    } else {
        vec![name.to_owned(), value.to_owned()]
    }
}

/// Returns the parser of whole numbers in a range. `clap::value_parser!` reports the errors of
/// Rust's integers instead, such as `invalid digit found in string`.
pub(crate) fn whole_number<T>(
    range: impl RangeBounds<T> + Debug + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err = ParseIntError> + PartialOrd + 'static,
{
    move |text: &str| {
        let outside = || format!("{text} is not in {range:?}");
        let number = text.parse::<T>().map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow if matches!(range.end_bound(), Bound::Unbounded) => {
                "the number is too large".to_owned()
            }
            IntErrorKind::PosOverflow => outside(),
            _ => "expected a whole number".to_owned(),
        })?;
        if range.contains(&number) { Ok(number) } else { Err(outside()) }
    }
}

/// Parses an address to listen on.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:9090".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_numbers_state_what_is_expected() {
        let rows = [
            (whole_number::<u16>(1..)("3"), Ok(3)),
            (whole_number::<u16>(1..)("0"), Err("0 is not in 1..")),
            (whole_number::<u16>(1..)("x"), Err("expected a whole number")),
            (whole_number::<u16>(..)(""), Err("expected a whole number")),
            (whole_number::<u16>(..)("-1"), Err("expected a whole number")),
            (whole_number::<u16>(..)("70000"), Err("the number is too large")),
            (whole_number::<u16>(1..=1000)("1001"), Err("1001 is not in 1..=1000")),
            (whole_number::<u16>(1..=1000)("70000"), Err("70000 is not in 1..=1000")),
        ];
        for (parsed, expected) in rows {
            assert_eq!(parsed, expected.map_err(str::to_owned));
        }
    }
}
