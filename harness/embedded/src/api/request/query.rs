//! The parameters of a request.

use std::time::Duration;

use crate::registry::{Status, Strictness};

/// The parameters, in their order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the question mark.
    pub fn read(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter, empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a switch is on: stated, and neither `false` nor `0` (`runtime.Convert_Slice_string_To_bool`).
    pub fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("{name}: strconv.ParseInt: parsing {value:?}: invalid syntax"))
        })
    }

    /// `dryRun`: everything but storing is done.
    pub fn dry_run(&self) -> Result<bool, Status> {
        match self.get("dryRun") {
            None | Some("") => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(Status::bad_request(format!(
                "dryRun: Unsupported value: {other:?}: supported values: \"All\""
            ))),
        }
    }

    /// `fieldValidation`: what becomes of unknown fields.
    pub fn strictness(&self) -> Result<Strictness, Status> {
        match self.text("fieldValidation") {
            "" | "Warn" => Ok(Strictness::Warn),
            "Ignore" => Ok(Strictness::Ignore),
            "Strict" => Ok(Strictness::Strict),
            other => Err(Status::bad_request(format!(
                "fieldValidation: Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
            ))),
        }
    }

    /// `timeoutSeconds`.
    pub fn timeout(&self) -> Result<Option<Duration>, Status> {
        let seconds = self.number("timeoutSeconds")?;
        Ok(seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds as u64)))
    }
}
