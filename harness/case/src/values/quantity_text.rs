//! [`QuantityText`].

use std::fmt;
use std::str::FromStr;

use evictlab_rules::quantity::Quantity;

use super::error::ValueError;
use super::from_text::{impl_from_text, quantity_pattern};

/// A Kubernetes quantity with its text, because the kubelet's output is compared as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantityText {
    text: String,
    quantity: Quantity,
}

impl_from_text!(QuantityText, concat!("^", quantity_pattern!(), "$"));

impl QuantityText {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the amount.
    pub fn quantity(&self) -> &Quantity {
        &self.quantity
    }

    /// Returns the amount in whole units, such as bytes or processes, rounded up; 0 for a negative
    /// amount.
    pub fn amount(&self) -> u64 {
        u64::try_from(self.quantity.value()).unwrap_or(0)
    }
}

impl FromStr for QuantityText {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let quantity = text.parse()?;
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return Err(ValueError::NoNumber(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), quantity })
    }
}

impl fmt::Display for QuantityText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn a_quantity_keeps_its_text() {
        check_texts::<QuantityText>(
            &["0", "200Mi", "1.5Gi", "500M", "1e9", ".5", "1.", "+100Mi", "12n"],
            &["", "Mi", "200MB", "200 Mi", "1,5Gi", "1Kii", "ki", "200mi", "--1"],
        );
    }

    #[test]
    fn an_amount_is_in_whole_units() {
        for (text, amount) in [("1Ki", 1024), ("0.5", 1), ("1.2", 2), ("-3", 0)] {
            assert_eq!(text.parse::<QuantityText>().unwrap().amount(), amount, "{text}");
        }
    }
}
