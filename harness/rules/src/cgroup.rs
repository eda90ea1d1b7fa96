//! Versions of the kernel's control groups.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of the control groups of Linux.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
// Published schemas of case files use this name.
#[schemars(rename = "Cgroup")]
pub enum CgroupVersion {
    /// Version 1.
    V1,
    /// Version 2, the unified hierarchy.
    #[default]
    V2,
}

/// A text that does not name a version of the control groups.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cgroup version {0:?}: expected v1 or v2")]
pub struct CgroupVersionError(pub String);

impl CgroupVersion {
    /// Returns `v1` or `v2`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

impl fmt::Display for CgroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CgroupVersion {
    type Err = CgroupVersionError;

    /// Parses `v1` or `v2`, also without the `v`.
    fn from_str(text: &str) -> Result<Self, CgroupVersionError> {
        match text {
            "v1" | "1" => Ok(Self::V1),
            "v2" | "2" => Ok(Self::V2),
            _ => Err(CgroupVersionError(text.to_owned())),
        }
    }
}
