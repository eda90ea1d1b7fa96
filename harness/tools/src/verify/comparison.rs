//! The results of a case on both kubelets.

use std::sync::Arc;

use evictlab_evidence::Observations;
use evictlab_judge::CaseResult;
use evictlab_report::{CaseId, CaseInfo};

use super::conclusion::Conclusion;
use super::context::ReportContext;

/// The results of a case on both kubelets.
#[derive(Debug, Default)]
pub(super) struct CaseComparison {
    /// The case.
    pub info: Option<CaseInfo>,
    /// The last run on each kubelet.
    pub runs: [Option<LastRun>; 2],
}

/// The last run of a case on a kubelet.
#[derive(Debug)]
pub(super) struct LastRun {
    pub id: CaseId,
    pub result: Arc<CaseResult>,
    pub evidence: Option<Arc<Observations>>,
}

impl CaseComparison {
    fn judgements(&self) -> [Option<&CaseResult>; 2] {
        self.runs.each_ref().map(|run| run.as_ref().map(|run| &*run.result))
    }

    /// Returns `suite/case`.
    pub(crate) fn name(&self) -> String {
        self.info.as_ref().map(CaseInfo::suite_and_case).unwrap_or_default()
    }

    pub(crate) fn conclusion(&self, context: &ReportContext) -> Conclusion {
        Conclusion::new(context.sides.each_ref(), self.judgements())
    }
}
