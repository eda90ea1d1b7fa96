//! [`UsageBound`] and its [`Comparison`].

use std::fmt;
use std::str::FromStr;

use evictlab_rules::quantity::Quantity;

use super::error::ValueError;
use super::from_text::{impl_from_text, quantity_pattern};
use super::quantity_text::QuantityText;

/// Comparison of a usage with the quantity of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `>`
    MoreThan,
    /// `<=`
    AtMost,
    /// `<`
    LessThan,
    /// `=`
    Exactly,
}

impl Comparison {
    /// Longer signs first, because `>` is a prefix of `>=`.
    const SIGNS: [(&'static str, Self); 5] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        (">", Self::MoreThan),
        ("<", Self::LessThan),
        ("=", Self::Exactly),
    ];

    fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::AtLeast => ordering.is_ge(),
            Self::MoreThan => ordering.is_gt(),
            Self::AtMost => ordering.is_le(),
            Self::LessThan => ordering.is_lt(),
            Self::Exactly => ordering.is_eq(),
        }
    }
}

/// A bound on a usage, such as `>=200Mi`, `<1Mi` or `=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBound {
    /// Comparison of the usage with the quantity.
    pub comparison: Comparison,
    /// Quantity.
    pub quantity: QuantityText,
}

impl_from_text!(UsageBound, concat!("^(>=|<=|>|<|=) *", quantity_pattern!(), "$"));

impl UsageBound {
    /// Returns whether a usage satisfies the bound.
    pub fn holds(&self, usage: &Quantity) -> bool {
        self.comparison.holds(usage.cmp(self.quantity.quantity()))
    }
}

impl FromStr for UsageBound {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let read = |(sign, comparison)| Some((comparison, text.strip_prefix(sign)?));
        let (comparison, quantity) =
            Comparison::SIGNS.into_iter().find_map(read).ok_or_else(|| ValueError::Bound(text.to_owned()))?;
        Ok(Self { comparison, quantity: quantity.trim_start().parse()? })
    }
}

impl fmt::Display for UsageBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign =
            Comparison::SIGNS.into_iter().find(|(_, of)| *of == self.comparison).map_or("", |(s, _)| s);
        write!(f, "{sign}{}", self.quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn a_bound_has_a_sign_and_a_quantity() {
        check_texts::<UsageBound>(
            &[">=200Mi", "<1Mi", "=0", ">1", "<=1.5Gi"],
            &["", "200Mi", ">=", "=>1", "!1", "==1"],
        );
    }

    #[test]
    fn a_bound_compares_by_its_sign() {
        let rows = [
            (">=1Mi", [false, true, true]),
            (">1Mi", [false, false, true]),
            ("<=1Mi", [true, true, false]),
            ("<1Mi", [true, false, false]),
            ("=1Mi", [false, true, false]),
        ];
        for (bound, expected) in rows {
            let bound: UsageBound = bound.parse().unwrap();
            let held = ["1023Ki", "1024Ki", "1025Ki"].map(|usage| bound.holds(&usage.parse().unwrap()));
            assert_eq!(held, expected, "{bound}");
        }
    }
}
