//! Version and page of a list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::apiserver::Status;
use crate::http::errors;
use crate::http::request::Query;

/// Name of the parameter that selects the interpretation of `resourceVersion`.
pub(crate) const MATCH: &str = "resourceVersionMatch";

/// Reads `resourceVersion`; `None` if it is missing, 0 for any version.
pub(crate) fn resource_version(query: &Query) -> Result<Option<u64>, Status> {
    let text = query.text("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Status::bad_request(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

/// `continue`: the end of the previous page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContinueToken {
    v: String,
    /// Version of all pages.
    rv: u64,
    /// Namespace and name of the last object of the previous page.
    start: String,
}

impl ContinueToken {
    /// A token for the page after an object.
    pub(crate) fn new(version: u64, namespace: &str, name: &str) -> Self {
        Self { v: "meta.k8s.io/v1".into(), rv: version, start: format!("{namespace}/{name}") }
    }

    /// Returns namespace and name of the last object of the previous page.
    pub(crate) fn last_object(&self) -> (&str, &str) {
        self.start.split_once('/').unwrap_or(("", &self.start))
    }

    /// Encodes the token for the client.
    pub(crate) fn encode(&self) -> String {
        serde_json::to_vec(self).map(|json| URL_SAFE_NO_PAD.encode(json)).unwrap_or_default()
    }

    fn decode(text: &str) -> Result<Self, Status> {
        let invalid = || Status::bad_request("continue key is not valid");
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid())?;
        serde_json::from_slice(&json).map_err(|_| invalid())
    }
}

/// The version of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListVersion {
    /// The current version, which must not be older than this one.
    NotOlderThan(u64),
    /// Exactly this version.
    Exact(u64),
}

/// Options of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Requested version.
    pub(crate) version: ListVersion,
    /// End of the previous page.
    pub(crate) token: Option<ContinueToken>,
    /// Maximum number of objects.
    pub(crate) limit: Option<usize>,
}

impl ListOptions {
    /// Reads `limit`, `continue`, `resourceVersion` and `resourceVersionMatch`, as
    /// `apimachinery/pkg/apis/meta/internalversion/validation` and the watch cache interpret them.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Status> {
        let version = resource_version(query)?;
        let token = query.text("continue");
        let matching = query.text(MATCH);
        let errors = validate(query, version);
        if !errors.is_empty() {
            return Err(errors::invalid_list_options(&errors));
        }
        let limit = query.number("limit")?.filter(|limit| *limit > 0).map(|limit| limit as usize);
        if !token.is_empty() {
            if version.is_some_and(|version| version > 0) {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = ContinueToken::decode(token)?;
            return Ok(Self { version: ListVersion::Exact(token.rv), token: Some(token), limit });
        }
        // A limit without a match asks for the exact version.
        let is_exact = matching == "Exact" || matching.is_empty() && limit.is_some();
        let version = match version {
            Some(version) if version > 0 && is_exact => ListVersion::Exact(version),
            version => ListVersion::NotOlderThan(version.unwrap_or_default()),
        };
        Ok(Self { version, token: None, limit })
    }
}

/// Returns the invalid parameters with their errors.
fn validate(query: &Query, version: Option<u64>) -> Vec<(&'static str, String)> {
    let matching = query.text(MATCH);
    let mut errors: Vec<(&str, String)> = Vec::new();
    if !matching.is_empty() {
        if version.is_none() {
            let error = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push((MATCH, error.to_owned()));
        }
        if !query.text("continue").is_empty() {
            let error = "Forbidden: resourceVersionMatch is forbidden when continue is provided";
            errors.push((MATCH, error.to_owned()));
        }
        if !["Exact", "NotOlderThan"].contains(&matching) {
            let supported = "supported values: \"\", \"Exact\", \"NotOlderThan\"";
            errors.push((MATCH, format!("Unsupported value: {matching:?}: {supported}")));
        }
        if matching == "Exact" && version == Some(0) {
            let error = "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push((MATCH, error.to_owned()));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        let error = "Forbidden: sendInitialEvents is forbidden for list";
        errors.push(("sendInitialEvents", error.to_owned()));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_requested_version() {
        let version =
            |query: &str| ListOptions::from_query(&Query::parse(query)).map(|options| options.version);
        assert_eq!(version(""), Ok(ListVersion::NotOlderThan(0)));
        assert_eq!(version("resourceVersion=0&limit=500"), Ok(ListVersion::NotOlderThan(0)));
        assert_eq!(version("resourceVersion=7"), Ok(ListVersion::NotOlderThan(7)));
        assert_eq!(version("resourceVersion=7&limit=2"), Ok(ListVersion::Exact(7)));
        assert_eq!(
            version("resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan"),
            Ok(ListVersion::NotOlderThan(7))
        );
        assert_eq!(version("resourceVersion=7&resourceVersionMatch=Exact"), Ok(ListVersion::Exact(7)));
        let token = ContinueToken::new(9, "a", "b").encode();
        assert_eq!(version(&format!("continue={token}")), Ok(ListVersion::Exact(9)));
        for (query, code) in [
            ("resourceVersion=x", 400),
            ("continue=%21", 400),
            ("resourceVersionMatch=Exact", 422),
            ("resourceVersion=0&resourceVersionMatch=Exact", 422),
            ("resourceVersion=1&resourceVersionMatch=Newest", 422),
            ("sendInitialEvents=true", 422),
        ] {
            assert_eq!(version(query).map_err(|status| status.code), Err(code), "{query}");
        }
    }
}
