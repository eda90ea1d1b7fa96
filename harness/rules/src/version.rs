//! The version of a kubelet, the axis on which every rule turns.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kubelet's version as `kubelet --version` and `nodeInfo.kubeletVersion` give it, such as `v1.32.13`.
///
/// Ordered by its numbers; a pre-release or build suffix is kept for printing and orders last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeletVersion {
    /// 1, always, so far.
    pub major: u32,
    /// The minor, on which the eviction rules depend.
    pub minor: u32,
    /// The patch.
    pub patch: u32,
    /// What follows the patch, its separator included (`-rc.1`, `+k3s1`), or nothing.
    pub suffix: String,
}

impl KubeletVersion {
    /// `v1.<minor>.0`.
    pub fn minor(minor: u32) -> Self {
        Self { major: 1, minor, patch: 0, suffix: String::new() }
    }

    /// Whether this kubelet is of minor 1.`minor` or newer. A pre-release counts as its release.
    pub fn at_least(&self, minor: u32) -> bool {
        (self.major, self.minor) >= (1, minor)
    }
}

/// The text is no `vMAJOR.MINOR.PATCH`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kubelet version: write it like v1.32.13")]
pub struct VersionError(pub String);

impl FromStr for KubeletVersion {
    type Err = VersionError;

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

impl<'de> Deserialize<'de> for KubeletVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_prints_and_orders() {
        for text in ["v1.32.13", "v1.37.0-rc.1", "v1.31.14+k3s1"] {
            assert_eq!(text.parse::<KubeletVersion>().unwrap().to_string(), text);
        }
        let [old, new] = ["v1.31.14", "1.32.2"].map(|text| text.parse::<KubeletVersion>().unwrap());
        assert!(old < new && !old.at_least(32) && new.at_least(32));
        for wrong in ["", "v1.32", "latest", "v1.32.x", "v1.2.3.4"] {
            assert!(wrong.parse::<KubeletVersion>().is_err(), "{wrong}");
        }
    }
}
