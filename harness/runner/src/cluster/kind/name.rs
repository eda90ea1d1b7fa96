//! A cluster's name: it becomes a file, containers, host names and Kubernetes nodes.

use std::fmt;
use std::str::FromStr;

/// The longest name: with `-control-plane` and a group's number behind it, it must be a host name of 63 bytes or less.
const LONGEST: usize = 45;

/// The name of a new cluster, fit for kind, Docker and Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(String);

/// The text names no cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name for a cluster: lower-case letters, digits and `-`, a letter or digit at both ends, at most {LONGEST} of them"
)]
pub struct ClusterNameError(String);

impl FromStr for ClusterName {
    type Err = ClusterNameError;

    fn from_str(text: &str) -> Result<Self, ClusterNameError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = text.len() <= LONGEST
            && text.chars().all(|c| plain(c) || c == '-')
            && text.starts_with(plain)
            && text.ends_with(plain);
        if fits { Ok(Self(text.to_owned())) } else { Err(ClusterNameError(text.to_owned())) }
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
    fn a_name_is_a_host_name_and_no_path() {
        for good in ["dev", "evictlab-7f3a", "3", &"a".repeat(45)] {
            assert_eq!(good.parse::<ClusterName>().unwrap().to_string(), good);
        }
        for bad in ["", "Dev", "../x", "a b", "-a", "a-", "a.b", &"a".repeat(46)] {
            let error = bad.parse::<ClusterName>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad:?} is no name")), "{error}");
        }
    }
}
