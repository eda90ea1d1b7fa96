//! Which versions of which objects a list asks for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::api::refusal;
use crate::api::request::Query;
use crate::registry::Status;

/// `resourceVersion`; nothing if it is absent, 0 for whatever there is.
pub fn version(query: &Query) -> Result<Option<u64>, Status> {
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

/// Where the last page ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continue {
    v: String,
    /// The version of all pages.
    rv: u64,
    /// The namespace and name after which the next page begins.
    start: String,
}

impl Continue {
    /// A page ended at an object.
    pub fn after(version: u64, namespace: &str, name: &str) -> Self {
        Self { v: "meta.k8s.io/v1".into(), rv: version, start: format!("{namespace}/{name}") }
    }

    /// The object at which the last page ended.
    pub fn end(&self) -> (&str, &str) {
        self.start.split_once('/').unwrap_or(("", &self.start))
    }

    /// As a client hands it back.
    pub fn token(&self) -> String {
        serde_json::to_vec(self).map(|json| URL_SAFE_NO_PAD.encode(json)).unwrap_or_default()
    }

    fn read(token: &str) -> Result<Self, Status> {
        let bad = || Status::bad_request("continue key is not valid");
        let json = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
        serde_json::from_slice(&json).map_err(|_| bad())
    }
}

/// Which state a list is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The present, which must be at least of this version.
    Present(u64),
    /// That of a version.
    At(u64),
}

/// What a list is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Of which state.
    pub moment: Moment,
    /// After which object.
    pub after: Option<Continue>,
    /// How many at most.
    pub limit: Option<usize>,
}

impl Page {
    /// Reads `limit`, `continue`, `resourceVersion` and `resourceVersionMatch`, as
    /// `apimachinery/pkg/apis/meta/internalversion/validation` and the watch cache understand them.
    pub fn read(query: &Query) -> Result<Self, Status> {
        let version = version(query)?;
        let token = query.text("continue");
        let matching = query.text("resourceVersionMatch");
        let mut errors = Vec::new();
        const MATCH: &str = "resourceVersionMatch";
        if !matching.is_empty() {
            if version.is_none() {
                errors.push((
                    MATCH,
                    "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided".into(),
                ));
            }
            if !token.is_empty() {
                errors.push((
                    MATCH,
                    "Forbidden: resourceVersionMatch is forbidden when continue is provided".into(),
                ));
            }
            if !["Exact", "NotOlderThan"].contains(&matching) {
                errors.push((
                    MATCH,
                    format!(
                        "Unsupported value: {matching:?}: supported values: \"\", \"Exact\", \"NotOlderThan\""
                    ),
                ));
            }
            if matching == "Exact" && version == Some(0) {
                errors.push((
                    MATCH,
                    "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"".into(),
                ));
            }
        }
        if query.get("sendInitialEvents").is_some() {
            errors.push(("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list".into()));
        }
        if !errors.is_empty() {
            return Err(refusal::invalid_options(&errors));
        }
        let limit = query.number("limit")?.filter(|limit| *limit > 0).map(|limit| limit as usize);
        if !token.is_empty() {
            if version.is_some_and(|version| version > 0) {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let after = Continue::read(token)?;
            return Ok(Self { moment: Moment::At(after.rv), after: Some(after), limit });
        }
        let moment = match version {
            // Without a match, a limit asks for the very version.
            Some(version)
                if version > 0 && (matching == "Exact" || matching.is_empty() && limit.is_some()) =>
            {
                Moment::At(version)
            }
            version => Moment::Present(version.unwrap_or_default()),
        };
        Ok(Self { moment, after: None, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_which_state_is_wanted() {
        let moment = |query: &str| Page::read(&Query::read(query)).map(|page| page.moment);
        assert_eq!(moment(""), Ok(Moment::Present(0)));
        assert_eq!(moment("resourceVersion=0&limit=500"), Ok(Moment::Present(0)));
        assert_eq!(moment("resourceVersion=7"), Ok(Moment::Present(7)));
        assert_eq!(moment("resourceVersion=7&limit=2"), Ok(Moment::At(7)));
        assert_eq!(
            moment("resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan"),
            Ok(Moment::Present(7))
        );
        assert_eq!(moment("resourceVersion=7&resourceVersionMatch=Exact"), Ok(Moment::At(7)));
        let token = Continue::after(9, "a", "b").token();
        assert_eq!(moment(&format!("continue={token}")), Ok(Moment::At(9)));
        for (query, code) in [
            ("resourceVersion=x", 400),
            ("continue=%21", 400),
            ("resourceVersionMatch=Exact", 422),
            ("resourceVersion=0&resourceVersionMatch=Exact", 422),
            ("resourceVersion=1&resourceVersionMatch=Newest", 422),
            ("sendInitialEvents=true", 422),
        ] {
            assert_eq!(moment(query).map_err(|status| status.code), Err(code), "{query}");
        }
    }
}
