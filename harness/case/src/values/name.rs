//! Names: DNS labels.

use std::fmt;
use std::str::FromStr;

use super::error::ValueError;
use super::from_text::impl_from_text;

/// Name of a case, a pod, a container or a volume: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl_from_text!(Name, "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$");

impl Name {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends = |c: char| inner(c) && c != '-';
        let label = (1..=63).contains(&text.len())
            && text.chars().all(inner)
            && text.starts_with(ends)
            && text.ends_with(ends);
        if label { Ok(Self(text.to_owned())) } else { Err(ValueError::Name(text.to_owned())) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn a_name_is_a_dns_label() {
        let long = "a".repeat(64);
        check_texts::<Name>(&["a", "el-sidecar1", &long[1..]], &["", "-a", "a-", "A", "a.b", "a_b", &long]);
    }
}
