//! Durations in scripts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use crate::duration_error::{DurationError, parse_duration};

/// Duration such as `500ms` or `1m 30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

/// Text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: {problem}")]
pub struct SpanError {
    text: String,
    #[source]
    problem: DurationError,
}

impl Span {
    /// Returns the duration.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let invalid = |problem| SpanError { text: text.to_owned(), problem };
        parse_duration(text).map(Self).map_err(invalid)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(SpanVisitor)
    }
}

/// Parses within the visitor, so that YAML errors have the position of the text.
struct SpanVisitor;

impl de::Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
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
