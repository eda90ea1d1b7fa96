//! A length of time in a script.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// A length of time, such as `500ms` or `1m 30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no length of time: {problem}; write one such as 500ms, 3s or 1m 30s")]
pub struct SpanError {
    text: String,
    problem: String,
}

impl Span {
    /// The length itself.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Span {
    fn from(length: Duration) -> Self {
        Self(length)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let why =
            |error: humantime::DurationError| SpanError { text: text.to_owned(), problem: error.to_string() };
        humantime::parse_duration(text).map(Self).map_err(why)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^([0-9]+ *[a-zA-Z]+ *)+$|^0$"})
    }
}
