//! The kubelet version that an explanation is for.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use evictlab_rules::{KubeletVersion, VersionError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// A kubelet version that may lack the patch: `v1.31.14` of a Node, or `v1.31` of a user. No rule
/// of evictions depends on the patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedVersion {
    /// The version; the first patch if none is stated.
    version: KubeletVersion,
    is_minor: bool,
}

impl StatedVersion {
    /// Returns the version; the first patch of the minor version if no patch is stated.
    pub fn version(&self) -> &KubeletVersion {
        &self.version
    }

    /// Returns whether the version is 1.`minor` or newer.
    pub(crate) fn at_least(&self, minor: u32) -> bool {
        self.version.at_least(minor)
    }
}

impl From<KubeletVersion> for StatedVersion {
    fn from(version: KubeletVersion) -> Self {
        Self { version, is_minor: false }
    }
}

impl FromStr for StatedVersion {
    type Err = VersionError;

    /// Parses a version with or without the patch, and with or without the leading `v`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let of_minor = || Ok(Self { version: format!("{text}.0").parse()?, is_minor: true });
        let complete = text.parse::<KubeletVersion>().map(Self::from);
        complete.or_else(|error| of_minor().map_err(|_: VersionError| error))
    }
}

impl fmt::Display for StatedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, is_minor } = self;
        if *is_minor { write!(f, "v{}.{}", version.major, version.minor) } else { version.fmt(f) }
    }
}

impl Serialize for StatedVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for StatedVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "StatedVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": "kubelet version, such as `v1.32.13`, or `v1.32` if only the minor version is known" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_is_stated() {
        let rows = [
            ("v1.31", "v1.31"),
            ("1.31", "v1.31"),
            ("v1.31.0", "v1.31.0"),
            ("1.31.14", "v1.31.14"),
            ("v1.37.0-rc.1", "v1.37.0-rc.1"),
        ];
        for (text, printed) in rows {
            let stated: StatedVersion = text.parse().unwrap();
            assert_eq!(stated.to_string(), printed);
            assert_eq!(serde_json::to_value(&stated).unwrap(), printed);
            assert!(stated.at_least(31) && !stated.at_least(38), "{text}");
        }
        for text in ["", "v1", "latest", "v1.31.", "v1.31-rc.1"] {
            assert_eq!(text.parse::<StatedVersion>().unwrap_err(), VersionError(text.to_owned()));
        }
    }
}
