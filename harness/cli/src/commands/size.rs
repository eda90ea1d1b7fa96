//! Amounts of memory and disk on the command line.

use std::str::FromStr;

use evictlab_rules::quantity::Quantity;

/// A number of bytes as a quantity.
#[derive(Clone, Debug)]
pub struct Size {
    /// As it was written.
    pub text: String,
    /// What it is in bytes.
    pub bytes: u64,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let quantity: Quantity = text.parse().map_err(|error| format!("{error}"))?;
        match u64::try_from(quantity.value()) {
            Ok(bytes) if bytes > 0 => Ok(Self { text: text.to_owned(), bytes }),
            _ => Err("a size is greater than nothing".to_owned()),
        }
    }
}
