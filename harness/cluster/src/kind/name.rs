//! Names of clusters, which become file names, containers, host names and Kubernetes nodes.

use std::fmt;
use std::str::FromStr;

/// Maximum length. With the suffixes `-control-plane` and the number of a group, the name must be a
/// host name of at most 63 bytes.
const MAX_LENGTH: usize = 45;

/// Name of a new cluster, valid in kind, Docker and Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(String);

/// Invalid name of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to parse cluster name {0:?}: it must have at most {MAX_LENGTH} lower-case letters, digits and `-`, and start and end with a letter or digit"
)]
pub struct ClusterNameError(String);

impl FromStr for ClusterName {
    type Err = ClusterNameError;

    fn from_str(text: &str) -> Result<Self, ClusterNameError> {
        let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_valid = text.len() <= MAX_LENGTH
            && text.chars().all(|c| is_alphanumeric(c) || c == '-')
            && text.starts_with(is_alphanumeric)
            && text.ends_with(is_alphanumeric);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(ClusterNameError(text.to_owned())) }
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_host_names_and_rejects_paths() {
        for valid in ["dev", "evictlab-7f3a", "3", &"a".repeat(45)] {
            assert_eq!(valid.parse::<ClusterName>().unwrap().to_string(), valid);
        }
        for invalid in ["", "Dev", "../x", "a b", "-a", "a-", "a.b", &"a".repeat(46)] {
            let error = invalid.parse::<ClusterName>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("failed to parse cluster name {invalid:?}")), "{error}");
        }
    }
}
