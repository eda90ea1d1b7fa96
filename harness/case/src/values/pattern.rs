//! [`Pattern`].

use std::fmt;
use std::str::FromStr;

use super::error::ValueError;
use super::from_text::impl_from_text;

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(regex::Regex);

impl_from_text!(Pattern, "");

impl Pattern {
    /// Returns whether the expression matches any part of a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl FromStr for Pattern {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let why = |error| ValueError::Pattern { text: text.to_owned(), why: regex_problem(&error) };
        regex::Regex::new(text).map(Self).map_err(why)
    }
}

/// Returns why a regular expression is invalid, in one line.
pub(crate) fn regex_problem(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
