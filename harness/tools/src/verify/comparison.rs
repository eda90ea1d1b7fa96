//! The results of a case on both kubelets.

use std::sync::Arc;

use evictlab_evidence::Observations;
use evictlab_judge::CaseResult;
use evictlab_report::{CaseId, CaseInfo};

use super::conclusion::Conclusion;
use super::context::ReportContext;

/// The results of a case on both kubelets.
#[derive(Debug)]
pub(super) struct CaseComparison {
    /// The case.
    pub info: CaseInfo,
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
    /// Returns the comparison of a case without a result.
    pub(super) fn new(info: CaseInfo) -> Self {
        Self { info, runs: [None, None] }
    }

    fn results(&self) -> [Option<&CaseResult>; 2] {
        self.runs.each_ref().map(|run| run.as_ref().map(|run| &*run.result))
    }

    /// Returns `suite/case`.
    pub(crate) fn name(&self) -> String {
        self.info.suite_and_case()
    }

    /// Returns the conclusion from the results.
    pub(crate) fn conclusion(&self, context: &ReportContext) -> Conclusion {
        Conclusion::new(context.sides.each_ref(), self.results())
    }
}
