//! Kubelet versions, on which most eviction rules depend.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use semver::Prerelease;
use serde::{Deserialize, Serialize};

/// A kubelet version as `kubelet --version` and `nodeInfo.kubeletVersion` print it: `v1.32.13`.
///
/// Ordered by precedence (<https://semver.org/#spec-item-11>): a pre-release before its release,
/// build metadata after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KubeletVersion {
    /// The major version, 1 for every kubelet so far.
    pub major: u32,
    /// The minor version, on which the eviction rules depend.
    pub minor: u32,
    /// The patch version.
    pub patch: u32,
    /// The text after the patch version, separator included (`-rc.1`, `+k3s1`); often empty.
    pub suffix: String,
}

impl KubeletVersion {
    /// The newest minor version whose rules are known. Newer kubelets have the rules of this one.
    pub const NEWEST_MINOR: u32 = 37;

    /// Returns `v1.<minor>.0`.
    pub fn from_minor(minor: u32) -> Self {
        Self { major: 1, minor, patch: 0, suffix: String::new() }
    }

    /// Returns whether the version is 1.`minor` or newer. A pre-release counts as its release.
    pub fn at_least(&self, minor: u32) -> bool {
        (self.major, self.minor) >= (1, minor)
    }

    /// Compares versions by their precedence, in which build metadata after a `+` does not count. A
    /// suffix that is not valid in semver precedes those that are.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        self.precedence().cmp(&other.precedence())
    }

    fn precedence(&self) -> (u32, u32, u32, Option<Prerelease>, &str) {
        let suffix = self.suffix.split('+').next().unwrap_or_default();
        let prerelease = suffix.strip_prefix('-').unwrap_or(suffix);
        let valid = Prerelease::new(prerelease).ok();
        let invalid = if valid.is_none() { prerelease } else { "" };
        (self.major, self.minor, self.patch, valid, invalid)
    }
}

impl Ord for KubeletVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_precedence(other).then_with(|| self.suffix.cmp(&other.suffix))
    }
}

impl PartialOrd for KubeletVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The text is not of the form `vMAJOR.MINOR.PATCH`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid kubelet version {0:?}: expected a form like v1.32.13")]
pub struct VersionError(pub String);

impl FromStr for KubeletVersion {
    type Err = VersionError;

    /// Parses a version, with or without the leading `v`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError(text.to_owned());
        let plain = text.strip_prefix('v').unwrap_or(text);
        let end = plain.find(['-', '+']).unwrap_or(plain.len());
        let numbers: Vec<u32> =
            plain[..end].split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| error())?;
        let [major, minor, patch] = numbers[..] else { return Err(error()) };
        Ok(Self { major, minor, patch, suffix: plain[end..].to_owned() })
    }
}

impl fmt::Display for KubeletVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}{}", self.major, self.minor, self.patch, self.suffix)
    }
}

impl Serialize for KubeletVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for KubeletVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "KubeletVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": "kubelet version, such as `v1.32.13`" })
    }
}

impl<'de> Deserialize<'de> for KubeletVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_parsed() {
        for text in ["v1.32.13", "v1.37.0-rc.1", "v1.31.14+k3s1"] {
            assert_eq!(text.parse::<KubeletVersion>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_prerelease_precedes_its_release() {
        let ordered = [
            "v1.31.14",
            "v1.32.2",
            "v1.37.0-a~b",
            "v1.37.0-alpha.1",
            "v1.37.0-rc.9",
            "v1.37.0-rc.10",
            "v1.37.0",
            "v1.37.0+k3s1",
            "v1.37.0+k3s2",
            "v1.37.1-rc.0",
        ];
        let ordered = ordered.map(|text| text.parse::<KubeletVersion>().unwrap());
        assert!(ordered.is_sorted_by(|one, next| one < next), "{ordered:?}");
        assert_eq!(ordered[6].cmp_precedence(&ordered[8]), Ordering::Equal, "build metadata");
        assert!(!ordered[0].at_least(32) && ordered[1].at_least(32) && ordered[4].at_least(37));
    }

    #[test]
    fn rejects_other_texts() {
        for text in ["", "v1.32", "latest", "v1.32.x", "v1.2.3.4"] {
            assert!(text.parse::<KubeletVersion>().is_err(), "{text}");
        }
    }
}
