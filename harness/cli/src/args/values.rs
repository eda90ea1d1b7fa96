//! Values of options: sizes and durations.

use std::str::FromStr;
use std::time::Duration;

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

/// Parses a duration such as `30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}
