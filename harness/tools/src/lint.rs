//! The result of a check of case files, for programs.

use std::sync::Arc;

use evictlab_case::{LoadErrors, LoadedCase, Problem};
use evictlab_runner::model_limits;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a check, as `evictlab lint --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LintReport {
    /// Number of cases; 0 if there are problems.
    pub cases: usize,
    /// Mistakes in the case files.
    pub problems: Vec<LintProblem>,
    /// Parts of cases without `on-a-model` that the model does not run.
    pub warnings: Vec<String>,
}

/// A mistake in a case file.
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
        match loaded {
            Ok(cases) => {
                let limits = cases.iter().flat_map(|case| model_limits(case));
                let warnings = limits.map(|limit| limit.to_string()).collect();
                Self { cases: cases.len(), problems: Vec::new(), warnings }
            }
            Err(LoadErrors(problems)) => {
                let problems = problems.iter().map(LintProblem::from).collect();
                Self { cases: 0, problems, warnings: Vec::new() }
            }
        }
    }
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
