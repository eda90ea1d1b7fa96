//! What kubelets answered in a run.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Answer, Standing};
use crate::judge::Judgement;
use crate::report::{Report, ReportError, RunEvent, What};

/// The verdicts of a run of one case, by kubelet.
#[derive(Clone, Debug, Default)]
pub struct Answers(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// In the order in which they came, by the kubelet's label.
    verdicts: Vec<(String, Arc<Judgement>)>,
    /// Why a cluster could not be made.
    failed: Option<String>,
}

impl Answers {
    /// A report that notes them.
    pub fn report(&self) -> Box<dyn Report> {
        Box::new(Noting(self.clone()))
    }

    /// What the kubelet with this label answered: the first verdict that tells something.
    pub fn of(&self, kubelet: &str) -> Answer {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mine =
            || seen.verdicts.iter().filter(|(label, _)| label == kubelet).map(|(_, judgement)| judgement);
        let told = mine().find_map(|judgement| Some((Standing::of(judgement.verdict)?, judgement.verdict)));
        match (told, mine().next_back()) {
            (Some((standing, verdict)), _) => Answer::Told(standing, verdict.to_string()),
            (None, Some(last)) => {
                let times = match mine().count() {
                    1 => String::new(),
                    times => format!(" {times} times"),
                };
                Answer::Nothing(format!("{}{times}, {}", last.verdict, last.why.trim_end()))
            }
            (None, None) => {
                let why = seen.failed.clone().unwrap_or_else(|| "it was not run".to_owned());
                Answer::Nothing(why)
            }
        }
    }
}

struct Noting(Answers);

impl Report for Noting {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        let mut seen = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.what {
            What::CaseEnded { id, judgement, .. } => {
                seen.verdicts.push((id.kubelet.clone(), judgement.clone()));
            }
            What::ClusterFailed { cluster, error, .. } => {
                seen.failed = Some(format!("cluster {cluster} failed: {error}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;
    use crate::report::story;

    #[test]
    fn the_first_that_tells_counts() {
        let answers = Answers::default();
        let mut report = answers.report();
        for (kubelet, attempt, verdict) in [
            ("v1.31.14", 1, Verdict::Inconclusive),
            ("v1.31.14", 2, Verdict::Reproduced),
            ("v1.32.13", 1, Verdict::Error),
            ("v1.32.13", 2, Verdict::Inconclusive),
        ] {
            let what = story::case_ended("message", "a", kubelet, attempt, verdict, "why\n");
            report.take(&story::event(0.0, what)).unwrap();
        }
        assert_eq!(answers.of("v1.31.14"), Answer::Told(Standing::Bad, "reproduced".to_owned()));
        assert_eq!(answers.of("v1.32.13"), Answer::Nothing("inconclusive 2 times, why".to_owned()));
        assert_eq!(answers.of("v1.33.0"), Answer::Nothing("it was not run".to_owned()));
        let failed =
            What::ClusterFailed { cluster: "c".to_owned(), seconds: 1.0, error: "no image".to_owned() };
        report.take(&story::event(1.0, failed)).unwrap();
        assert_eq!(answers.of("v1.33.0"), Answer::Nothing("cluster c failed: no image".to_owned()));
    }
}
