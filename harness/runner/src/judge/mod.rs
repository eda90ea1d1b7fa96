//! From evidence to a verdict.

mod verdict;

pub use verdict::{Check, Doubt, Judgement, Phase, Testimony, Verdict};

/// stub
pub fn judge(
    _: &crate::case::Case,
    _: &evictlab_rules::KubeletVersion,
    seen: &crate::observe::Observations,
) -> Judgement {
    Judgement::without_evidence(
        if seen.seconds_to_outcome.is_some() { Verdict::Passed } else { Verdict::Inconclusive },
        "stub",
    )
}
