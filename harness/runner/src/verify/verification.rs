//! The report that becomes the document.

use std::sync::{Arc, Mutex, PoisonError};

use super::document::document;
use super::{Conclusion, Setting};
use crate::judge::Judgement;
use crate::observe::Observations;
use crate::report::{CaseId, Planned, Report, ReportError, RunDir, RunEvent, What, of_model};

/// A case on the two kubelets.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// What the plan says of it.
    pub planned: Option<Planned>,
    /// Its last run on each kubelet.
    pub runs: [Option<LastRun>; 2],
}

/// The last run of a case on a kubelet.
#[derive(Debug)]
pub(super) struct LastRun {
    pub id: CaseId,
    pub judgement: Arc<Judgement>,
    pub evidence: Option<Arc<Observations>>,
}

/// What was concluded, a sentence for each case, once the reports are finished.
#[derive(Clone, Debug, Default)]
pub struct Concluded(Arc<Mutex<Vec<(Conclusion, String)>>>);

impl Concluded {
    /// The conclusions.
    pub fn all(&self) -> Vec<(Conclusion, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes `verify.md` at the top of the run's directory when every case has its verdicts, and at the end.
#[derive(Debug)]
pub struct Verification {
    run_dir: RunDir,
    setting: Setting,
    compared: Vec<Compared>,
    /// What was modelled.
    model: Option<String>,
    concluded: Concluded,
}

impl Verification {
    /// Writes into `run_dir`. What is concluded is to be had from the other, when this is finished.
    pub fn new(run_dir: RunDir, setting: Setting) -> (Self, Concluded) {
        let concluded = Concluded::default();
        let verification =
            Self { run_dir, setting, compared: vec![], model: None, concluded: concluded.clone() };
        (verification, concluded)
    }

    fn write(&self) -> Result<(), ReportError> {
        let text = document(&self.setting, &self.compared, self.model.as_deref(), &self.run_dir);
        self.run_dir.write("verify.md", &text)
    }
}

impl Compared {
    fn judgements(&self) -> [Option<&Judgement>; 2] {
        self.runs.each_ref().map(|run| run.as_ref().map(|run| &*run.judgement))
    }

    /// `suite/case`.
    pub fn name(&self) -> String {
        self.planned.as_ref().map(|planned| format!("{}/{}", planned.suite, planned.case)).unwrap_or_default()
    }

    pub fn conclusion(&self, setting: &Setting) -> Conclusion {
        Conclusion::of(setting.sides.each_ref(), self.judgements())
    }
}

impl Report for Verification {
    fn name(&self) -> &'static str {
        "verification"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        match &event.what {
            What::RunStarted { cases, model, evictlab, .. } => {
                let of =
                    |planned: &Planned| Compared { planned: Some(planned.clone()), ..Compared::default() };
                self.compared = cases.iter().map(of).collect();
                self.model = model.as_ref().map(of_model);
                self.setting.facts.insert(0, ("evictlab".to_owned(), evictlab.clone()));
            }
            What::CaseEnded { id, judgement, evidence, .. } => {
                let side = self.setting.sides.iter().position(|side| side.label == id.kubelet);
                let case = |compared: &&mut Compared| {
                    compared.planned.as_ref().is_some_and(|it| it.suite == id.suite && it.case == id.case)
                };
                if let (Some(side), Some(compared)) = (side, self.compared.iter_mut().find(case)) {
                    let (judgement, evidence) = (judgement.clone(), evidence.clone());
                    compared.runs[side] = Some(LastRun { id: id.clone(), judgement, evidence });
                }
                // Whoever waits for it need not wait for the end of the cluster.
                if self.compared.iter().all(|compared| compared.runs.iter().all(Option::is_some)) {
                    return self.write();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        let all = self.compared.iter().map(|compared| {
            let conclusion = compared.conclusion(&self.setting);
            let sentence = conclusion.sentence(&compared.name(), self.setting.sides.each_ref());
            (conclusion, sentence)
        });
        *self.concluded.0.lock().unwrap_or_else(PoisonError::into_inner) = all.collect();
        self.write()
    }
}
