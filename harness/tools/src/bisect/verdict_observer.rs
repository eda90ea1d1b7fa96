//! Collects the verdicts of a run by kubelet.

use std::sync::{Arc, Mutex, PoisonError};

use super::candidate::Standing;
use super::search::ProbeOutcome;
use evictlab_judge::CaseResult;
use evictlab_report::RunState;
use evictlab_report::{Report, ReportError, RunEvent, RunEventKind};

/// The verdicts of a run of one case, by kubelet.
#[derive(Clone, Debug, Default)]
pub struct VerdictObserver(Arc<Mutex<ObservedVerdicts>>);

#[derive(Debug, Default)]
struct ObservedVerdicts {
    /// Kubelet label and result, in order of arrival.
    verdicts: Vec<(String, Arc<CaseResult>)>,
    /// Error of a cluster that could not be created.
    cluster_error: Option<String>,
}

impl VerdictObserver {
    /// Returns a report that collects the verdicts.
    pub fn report(&self) -> Box<dyn Report> {
        Box::new(VerdictReport(self.clone()))
    }

    /// Returns the outcome for a kubelet label: its first conclusive verdict.
    pub fn outcome(&self, kubelet: &str) -> ProbeOutcome {
        let conclusive = self
            .results(kubelet)
            .iter()
            .find_map(|result| Some((Standing::from_verdict(result.verdict)?, result.verdict)));
        match conclusive {
            Some((standing, verdict)) => ProbeOutcome::Conclusive(standing, verdict.to_string()),
            None => ProbeOutcome::Inconclusive(self.inconclusive_reason(kubelet)),
        }
    }

    /// Returns the standings of all conclusive verdicts on a kubelet, by its label.
    pub fn standings(&self, kubelet: &str) -> Vec<Standing> {
        self.results(kubelet).iter().filter_map(|result| Standing::from_verdict(result.verdict)).collect()
    }

    /// Returns the reason of the last verdict on a kubelet that was not conclusive; without one, the
    /// reason why there is no verdict.
    pub fn inconclusive_reason(&self, kubelet: &str) -> String {
        let mut inconclusive = self.results(kubelet);
        inconclusive.retain(|result| Standing::from_verdict(result.verdict).is_none());
        let times = match inconclusive.len() {
            1 => String::new(),
            times => format!(" {times} times"),
        };
        match inconclusive.last() {
            Some(last) => format!("{}{times}, {}", last.verdict, last.why.trim_end()),
            None => self.cluster_error().unwrap_or_else(|| "not run".to_owned()),
        }
    }

    /// Returns the error of a cluster that could not be created or opened.
    pub fn cluster_error(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cluster_error.clone()
    }

    /// Returns all results on a kubelet, in order.
    fn results(&self, kubelet: &str) -> Vec<Arc<CaseResult>> {
        let observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kubelet = observed.verdicts.iter().filter(|(label, _)| label == kubelet);
        of_kubelet.map(|(_, result)| result.clone()).collect()
    }
}

struct VerdictReport(VerdictObserver);

impl Report for VerdictReport {
    fn name(&self) -> &'static str {
        "verdicts"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        let mut observed = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.what {
            RunEventKind::CaseEnded { id, judgement, .. } => {
                observed.verdicts.push((id.kubelet.clone(), judgement.clone()));
            }
            RunEventKind::ClusterFailed { cluster, error, .. } => {
                observed.cluster_error = Some(format!("cluster {cluster} failed: {error}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _run: &RunState) -> Result<(), ReportError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_judge::Verdict;
    use evictlab_report::CaseId;
    use jiff::Timestamp;
    use std::sync::Arc;

    fn event(what: RunEventKind) -> RunEvent {
        RunEvent { at: Timestamp::UNIX_EPOCH, what }
    }

    fn case_ended(kubelet: &str, attempt: u32, verdict: Verdict) -> RunEventKind {
        let id = CaseId { suite: "message".into(), case: "a".into(), kubelet: kubelet.into(), attempt };
        let judgement = Arc::new(CaseResult::without_evidence(verdict, "why\n"));
        RunEventKind::CaseEnded { id, node: None, seconds: 8.24, judgement, evidence: None }
    }

    #[test]
    fn the_first_conclusive_verdict_counts() {
        let observer = VerdictObserver::default();
        let mut report = observer.report();
        for (kubelet, attempt, verdict) in [
            ("v1.31.14", 1, Verdict::Inconclusive),
            ("v1.31.14", 2, Verdict::Reproduced),
            ("v1.32.13", 1, Verdict::Error),
            ("v1.32.13", 2, Verdict::Inconclusive),
        ] {
            report.on_event(&event(case_ended(kubelet, attempt, verdict)), &RunState::default()).unwrap();
        }
        assert_eq!(
            observer.outcome("v1.31.14"),
            ProbeOutcome::Conclusive(Standing::Bad, "reproduced".to_owned())
        );
        assert_eq!(
            observer.outcome("v1.32.13"),
            ProbeOutcome::Inconclusive("inconclusive 2 times, why".to_owned())
        );
        assert_eq!(observer.outcome("v1.33.0"), ProbeOutcome::Inconclusive("not run".to_owned()));
        let failed = RunEventKind::ClusterFailed {
            cluster: "c".to_owned(),
            seconds: 1.0,
            error: "no image".to_owned(),
        };
        report.on_event(&event(failed), &RunState::default()).unwrap();
        assert_eq!(
            observer.outcome("v1.33.0"),
            ProbeOutcome::Inconclusive("cluster c failed: no image".to_owned())
        );
    }
}
