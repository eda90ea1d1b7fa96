//! The verdicts of a run by kubelet.

use std::sync::Arc;

use super::candidate::BisectTerm;
use super::search::ProbeOutcome;
use evictlab_judge::CaseResult;
use evictlab_report::{ClusterFailure, Report, VerdictCollector};

/// The verdicts of a run of one case, by kubelet.
#[derive(Clone, Debug, Default)]
pub struct KubeletVerdicts(VerdictCollector);

impl KubeletVerdicts {
    /// Returns a report that collects the verdicts.
    pub fn collector(&self) -> Box<dyn Report> {
        Box::new(self.0.clone())
    }

    /// Returns the outcome for a kubelet label: its first conclusive verdict.
    pub fn outcome(&self, kubelet: &str) -> ProbeOutcome {
        let conclusive = self
            .results(kubelet)
            .iter()
            .find_map(|result| Some((BisectTerm::from_verdict(result.verdict)?, result.verdict)));
        match conclusive {
            Some((term, verdict)) => ProbeOutcome::Conclusive(term, verdict.to_string()),
            None => ProbeOutcome::Inconclusive(self.inconclusive_reason(kubelet)),
        }
    }

    /// Returns the terms of all conclusive verdicts on a kubelet, by its label.
    pub fn terms(&self, kubelet: &str) -> Vec<BisectTerm> {
        self.results(kubelet).iter().filter_map(|result| BisectTerm::from_verdict(result.verdict)).collect()
    }

    /// Returns the reason of the last verdict on a kubelet that was not conclusive; without one,
    /// the reason that the kubelet has no verdict.
    pub fn inconclusive_reason(&self, kubelet: &str) -> String {
        let mut inconclusive = self.results(kubelet);
        inconclusive.retain(|result| BisectTerm::from_verdict(result.verdict).is_none());
        let describe = |result: &CaseResult| format!("{}, {}", result.verdict, result.why.trim_end());
        match &inconclusive[..] {
            [only] => describe(only),
            [.., last] => {
                format!("no conclusive verdict in {} attempts; last: {}", inconclusive.len(), describe(last))
            }
            [] => self.cluster_failure().map_or_else(|| "not run".to_owned(), |failure| failure.to_string()),
        }
    }

    /// Returns the failure of a cluster that could not be created or opened.
    pub fn cluster_failure(&self) -> Option<ClusterFailure> {
        self.0.cluster_failure()
    }

    /// Returns all results on a kubelet, in order.
    fn results(&self, kubelet: &str) -> Vec<Arc<CaseResult>> {
        let all = self.0.results().into_iter();
        all.filter(|one| one.id.kubelet == kubelet).map(|one| one.result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_judge::Verdict;
    use evictlab_report::{CaseId, RunEvent, RunEventKind, RunState};
    use jiff::Timestamp;

    fn event(kind: RunEventKind) -> RunEvent {
        RunEvent { at: Timestamp::UNIX_EPOCH, kind }
    }

    fn case_ended(kubelet: &str, attempt: u32, verdict: Verdict) -> RunEventKind {
        let id = CaseId { suite: "message".into(), case: "a".into(), kubelet: kubelet.into(), attempt };
        let result = Arc::new(CaseResult::without_evidence(verdict, "why\n"));
        RunEventKind::CaseEnded { id, node: None, seconds: 8.24, result, evidence: None }
    }

    #[test]
    fn the_first_conclusive_verdict_counts() {
        let verdicts = KubeletVerdicts::default();
        let mut report = verdicts.collector();
        for (kubelet, attempt, verdict) in [
            ("v1.31.14", 1, Verdict::Inconclusive),
            ("v1.31.14", 2, Verdict::Reproduced),
            ("v1.32.13", 1, Verdict::Error),
            ("v1.32.13", 2, Verdict::Inconclusive),
        ] {
            report.on_event(&event(case_ended(kubelet, attempt, verdict)), &RunState::default()).unwrap();
        }
        assert_eq!(
            verdicts.outcome("v1.31.14"),
            ProbeOutcome::Conclusive(BisectTerm::Bad, "reproduced".to_owned())
        );
        assert_eq!(
            verdicts.outcome("v1.32.13"),
            ProbeOutcome::Inconclusive(
                "no conclusive verdict in 2 attempts; last: inconclusive, why".to_owned()
            )
        );
        assert_eq!(verdicts.outcome("v1.33.0"), ProbeOutcome::Inconclusive("not run".to_owned()));
        let failed = RunEventKind::ClusterFailed {
            cluster: "c".to_owned(),
            seconds: 1.0,
            error: "no image".to_owned(),
            cause: None,
        };
        report.on_event(&event(failed), &RunState::default()).unwrap();
        assert_eq!(
            verdicts.outcome("v1.33.0"),
            ProbeOutcome::Inconclusive("cluster c failed: no image".to_owned())
        );
    }
}
