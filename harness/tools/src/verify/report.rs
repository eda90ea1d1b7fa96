//! The report that writes the document.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::comparison::{CaseComparison, LastRun};
use super::conclusion::CaseConclusion;
use super::context::ReportContext;
use super::document::document;
use evictlab_report::{
    CaseInfo, Report, ReportError, RunDir, RunEvent, RunEventKind, RunState, markdown_page, model_notice,
};

/// The conclusion about each case, available after the reports are finished.
#[derive(Clone, Debug, Default)]
pub struct Conclusions(Arc<Mutex<Vec<CaseConclusion>>>);

impl Conclusions {
    /// Returns the conclusions.
    pub fn all(&self) -> Vec<CaseConclusion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes `verify.md` and `verify.html` to the run directory as soon as every case has its
/// verdicts, and at the end.
#[derive(Debug)]
pub struct VerifyReport {
    run_dir: RunDir,
    context: ReportContext,
    comparisons: Vec<CaseComparison>,
    /// Description of the model; `None` on real kubelets.
    model: Option<String>,
    conclusions: Conclusions,
    /// Cases to compare, as `suite/case`; all cases of the run by default.
    cases: Option<BTreeSet<String>>,
}

impl VerifyReport {
    /// Returns the report for this run directory, and the conclusions that it fills when it is
    /// finished.
    pub fn new(run_dir: RunDir, context: ReportContext) -> (Self, Conclusions) {
        let conclusions = Conclusions::default();
        let verification = Self {
            run_dir,
            context,
            comparisons: vec![],
            model: None,
            conclusions: conclusions.clone(),
            cases: None,
        };
        (verification, conclusions)
    }

    /// Restricts the comparison to these cases of the run, as `suite/case`.
    #[must_use]
    pub fn of_cases(self, cases: Option<BTreeSet<String>>) -> Self {
        Self { cases, ..self }
    }

    fn write(&self) -> Result<(), ReportError> {
        let text = document(&self.context, &self.comparisons, self.model.as_deref(), &self.run_dir);
        self.run_dir.write("verify.md", &text)?;
        self.run_dir.write("verify.html", &markdown_page("evictlab verify", &text))
    }
}

impl Report for VerifyReport {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        match &event.kind {
            RunEventKind::RunStarted { cases, model, evictlab, .. } => {
                let is_compared = |info: &&CaseInfo| {
                    self.cases.as_ref().is_none_or(|all| all.contains(&info.suite_and_case()))
                };
                self.comparisons =
                    cases.iter().filter(is_compared).cloned().map(CaseComparison::new).collect();
                self.model = model.as_ref().map(model_notice);
                self.context.environment.insert(0, ("evictlab".to_owned(), evictlab.clone()));
            }
            RunEventKind::CaseEnded { id, result, evidence, .. } => {
                let side = self.context.sides.iter().position(|side| side.label == id.kubelet);
                let of_case = |comparison: &&mut CaseComparison| comparison.name() == id.suite_and_case();
                if let (Some(side), Some(comparison)) = (side, self.comparisons.iter_mut().find(of_case)) {
                    let (result, evidence) = (result.clone(), evidence.clone());
                    comparison.runs[side] = Some(LastRun { id: id.clone(), result, evidence });
                }
                // The document is available before the cluster is deleted.
                if self.comparisons.iter().all(|comparison| comparison.runs.iter().all(Option::is_some)) {
                    return self.write();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _run: &RunState) -> Result<(), ReportError> {
        let all = self.comparisons.iter().map(|comparison| {
            let conclusion = comparison.conclusion(&self.context);
            let sentence = conclusion.sentence(&comparison.name(), self.context.sides.each_ref());
            CaseConclusion { conclusion, sentence }
        });
        *self.conclusions.0.lock().unwrap_or_else(PoisonError::into_inner) = all.collect();
        self.write()
    }
}
