//! Outcomes of invariant checks.

use serde::{Deserialize, Serialize};

use super::Invariant;

/// Result of checking an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvariantOutcome {
    /// The invariant holds.
    Holds,
    /// The invariant is violated.
    Violated,
    /// The evidence neither proves nor disproves the invariant.
    Unproven,
}

/// Result of checking one invariant on one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Checked invariant.
    pub invariant: Invariant,
    /// Result.
    pub outcome: InvariantOutcome,
    /// Description of the expected value.
    pub expected: String,
    /// Description of the observed value.
    pub observed: String,
}

impl Finding {
    pub(super) fn new(
        invariant: Invariant,
        outcome: InvariantOutcome,
        expected: String,
        observed: String,
    ) -> Self {
        Self { invariant, outcome, expected, observed }
    }

    /// Returns a finding that either holds or is violated.
    pub(super) fn proven(invariant: Invariant, holds: bool, expected: String, observed: String) -> Self {
        Self::new(
            invariant,
            if holds { InvariantOutcome::Holds } else { InvariantOutcome::Violated },
            expected,
            observed,
        )
    }
}
