//! A kubelet that may be the one.

use std::cmp::Ordering;

use evictlab_rules::KubeletVersion;
use semver::Version;

use crate::cluster::KubeletSpec;
use crate::judge::Verdict;

/// A kubelet that may be the first whose verdict differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// As it was asked for: a version, an image, a path.
    pub name: String,
    /// Where it comes from.
    pub spec: KubeletSpec,
    /// What it is.
    pub version: KubeletVersion,
}

/// What a verdict says of a kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// `passed` or `fixed`: it does what is right.
    Good,
    /// `failed` or `reproduced`.
    Bad,
}

impl Standing {
    /// That of a verdict; none of one that tells nothing.
    pub fn of(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Passed | Verdict::Fixed => Some(Self::Good),
            Verdict::Failed | Verdict::Reproduced => Some(Self::Bad),
            Verdict::Inconclusive | Verdict::Skipped | Verdict::Error => None,
        }
    }

    /// `good` or `bad`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

impl Candidate {
    /// Which of two is older by their versions; none tells where these are of one precedence (<https://semver.org/#spec-item-11>: what
    /// follows a `+` is no part of the order).
    pub(super) fn by_version(&self, other: &Self) -> Ordering {
        let precedence = |version: &KubeletVersion| {
            let text = version.to_string();
            Version::parse(text.trim_start_matches('v')).ok()
        };
        match (precedence(&self.version), precedence(&other.version)) {
            (Some(one), Some(other)) => one.cmp_precedence(&other),
            // A suffix that semver does not know.
            _ => self.version.cmp(&other.version),
        }
    }
}
