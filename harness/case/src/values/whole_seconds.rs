//! [`WholeSeconds`].

use std::fmt;
use std::str::FromStr;

use super::duration_text::DurationText;
use super::error::ValueError;
use super::from_text::impl_from_text;

/// A duration in whole seconds, such as `5s` or `1m 30s`: the API states grace periods in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WholeSeconds(DurationText);

impl_from_text!(WholeSeconds, r"^([0-9]+ *[a-zA-Z]+ *)+$|^0$");

impl WholeSeconds {
    /// Returns the duration as a type of the standard library.
    pub fn get(self) -> std::time::Duration {
        self.0.get()
    }
}

impl FromStr for WholeSeconds {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let duration: DurationText = text.parse()?;
        match duration.get().subsec_nanos() {
            0 => Ok(Self(duration)),
            _ => Err(ValueError::WholeSeconds(text.to_owned())),
        }
    }
}

impl fmt::Display for WholeSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn a_grace_period_does_not_have_a_fraction_of_a_second() {
        check_texts::<WholeSeconds>(
            &["0s", "1s", "1m 30s", "2m"],
            &["500ms", "1s 1ns", "1", "soon", "8days"],
        );
    }
}
