//! The result of a check of case files, for programs.

use std::sync::Arc;

use evictlab_case::{LoadErrors, LoadedCase, Problem};
use evictlab_runner::model_limits;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a check, as `evictlab lint --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LintReport {
    /// Number of cases; 0 if a case has a problem.
    pub cases: usize,
    /// Mistakes in the case files.
    pub problems: Vec<LintProblem>,
    /// Parts of cases without `on-a-model` that the model does not run, and expressions that may be
    /// too costly.
    pub warnings: Vec<LintProblem>,
}

/// A mistake in a case file, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LintProblem {
    /// Description, in one line.
    pub message: String,
    /// Path of the file.
    pub file: Option<String>,
    /// Line, from 1; `null` for a problem with the file itself.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// Advice, such as `did you mean …?`.
    pub note: Option<String>,
}

impl LintReport {
    /// Reports the result of loading cases.
    pub fn new(loaded: &Result<Vec<Arc<LoadedCase>>, LoadErrors>) -> Self {
        let listed = |problems: &[Problem]| problems.iter().map(LintProblem::from).collect();
        match loaded {
            Ok(cases) => {
                Self { cases: cases.len(), problems: Vec::new(), warnings: listed(&lint_warnings(cases)) }
            }
            Err(LoadErrors(problems)) => Self { cases: 0, problems: listed(problems), warnings: Vec::new() },
        }
    }
}

/// Returns the warnings about cases: what the model does not run, and what may be too costly.
pub fn lint_warnings(cases: &[Arc<LoadedCase>]) -> Vec<Problem> {
    cases.iter().flat_map(|case| model_limits(case).into_iter().chain(case.warnings())).collect()
}

impl From<&Problem> for LintProblem {
    fn from(problem: &Problem) -> Self {
        let place = problem.spans.first();
        let mark = place.and_then(|span| span.mark.as_ref());
        Self {
            message: problem.message.clone(),
            file: place.map(|span| span.file.clone()),
            line: mark.map(|mark| mark.line),
            column: mark.map(|mark| mark.column),
            note: place.map(|span| span.note.clone()).filter(|note| !note.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_have_places_as_problems_do() {
        let text = "name: a\nabout: b\nexpect: {evicted: []}\npods:\n  - metadata: {name: p}\n    spec:\n      containers:\n        - {name: c, image: \"nginx:1\"}\n";
        let case = evictlab_case::parse("s", "s/a.yaml", "s/a.yaml", text.as_bytes()).unwrap();
        let report = LintReport::new(&Ok(vec![Arc::new(case)]));
        let [warning] = &report.warnings[..] else { panic!("{report:?}") };
        assert!(!warning.message.contains('\n') && warning.message.contains("nginx:1"), "{warning:?}");
        assert_eq!((warning.file.as_deref(), warning.line), (Some("s/a.yaml"), Some(8)));
        assert!(warning.note.as_ref().is_some_and(|note| note.contains("on-a-model")), "{warning:?}");
    }
}
