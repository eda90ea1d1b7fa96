//! Parameters of requests.

use std::time::Duration;

use crate::apiserver::{FieldValidation, Status};

/// Parameters in the order of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part of a URL after the question mark.
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a parameter; empty if the parameter is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns whether a parameter has another value than `false` and `0`
    /// (`runtime.Convert_Slice_string_To_bool`).
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    /// Returns an integer parameter; `None` if the parameter is missing or empty.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("{name}: strconv.ParseInt: parsing {value:?}: invalid syntax"))
        })
    }

    /// Reads `fieldValidation`.
    pub(crate) fn field_validation(&self) -> Result<FieldValidation, Status> {
        match self.text("fieldValidation") {
            "" | "Warn" => Ok(FieldValidation::Warn),
            "Ignore" => Ok(FieldValidation::Ignore),
            "Strict" => Ok(FieldValidation::Strict),
            other => Err(Status::bad_request(format!(
                "fieldValidation: Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
            ))),
        }
    }

    /// Reads `timeoutSeconds`; `None` if it is missing or not positive.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Status> {
        let seconds = self.number("timeoutSeconds")?;
        Ok(seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds as u64)))
    }
}
