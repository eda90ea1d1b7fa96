//! Kubelets to test.

use evictlab_rules::KubeletVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use evictlab_cluster::KubeletSpec;
use evictlab_judge::Verdict;

/// A kubelet that may be the first with another verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletCandidate {
    /// Name from the command line: a version, an image or a path.
    pub name: String,
    /// Source of the kubelet.
    pub spec: KubeletSpec,
    /// Version of the kubelet.
    pub version: KubeletVersion,
}

/// Side of a range on which a verdict is: the terms of `git bisect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BisectTerm {
    /// `passed`, `flaky` or `fixed`.
    Good,
    /// `failed` or `reproduced`.
    Bad,
}

impl BisectTerm {
    /// Classifies a verdict; `None` for one that is not conclusive.
    pub fn from_verdict(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Passed | Verdict::Flaky | Verdict::Fixed => Some(Self::Good),
            Verdict::Failed | Verdict::Reproduced => Some(Self::Bad),
            Verdict::Inconclusive | Verdict::Skipped | Verdict::Error => None,
        }
    }

    /// Returns the other term.
    pub fn opposite(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
        }
    }

    /// Returns `good` or `bad`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}
