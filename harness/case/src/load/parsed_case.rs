//! A case file that is parsed, and one that is also checked.

use std::borrow::Borrow;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use evictlab_api_types::read;
use serde_saphyr::Error as YamlError;

use super::case_file::CasePath;
use crate::check::{PathProblem, check_case};
use crate::origin::{Origin, STDIN, STDIN_SUITE};
use crate::positions::{PathSegment, Position, Positions, find_word};
use crate::problem::{LoadErrors, Problem, SourceSpan};
use crate::schema::Case;
use crate::yaml_path;
use crate::yaml_problem::{second_document, typed_problem};

/// A parsed case file that is not yet checked. Sufficient to list and select cases; call
/// [`check`](Self::check) before running one.
#[derive(Clone, Debug)]
pub struct ParsedCase {
    /// Suite: the name of the folder of the case.
    pub suite: String,
    /// Path of the file in the folder of suites, such as `message/sidecars-are-named.yaml`.
    pub file: String,
    /// The case.
    pub case: Case,
    pub(crate) origin: Origin,
    text: Arc<str>,
}

/// A case without mistakes, and its file.
#[derive(Clone, Debug)]
pub struct LoadedCase(ParsedCase);

impl Deref for LoadedCase {
    type Target = ParsedCase;

    fn deref(&self) -> &ParsedCase {
        &self.0
    }
}

impl Borrow<ParsedCase> for LoadedCase {
    fn borrow(&self) -> &ParsedCase {
        &self.0
    }
}

impl ParsedCase {
    /// Parses a case file. `json` is its document, if known: the case is then read from it, and the
    /// text is only the source of positions in errors.
    ///
    /// # Errors
    /// The file is not UTF-8 or YAML, or a value does not have the type of its key.
    pub(super) fn parse(path: CasePath, bytes: &[u8], json: Option<&str>) -> Result<Self, LoadErrors> {
        let CasePath { suite, relative, origin } = path;
        let text: Arc<str> = std::str::from_utf8(bytes)
            .map_err(|why| not_utf8(&origin.to_string(), bytes, why.valid_up_to()))?
            .into();
        let mut case = match json.and_then(case_of_json) {
            Some(case) => case,
            None => case_of_yaml(&text)
                .map_err(|error| LoadErrors(vec![case_problem(&origin.to_string(), &text, &error)]))?,
        };
        case.add_pressure_pod();
        let file = match origin {
            // A case from the standard input has the file that its name requires.
            Origin::Stdin => format!("{STDIN_SUITE}/{}.yaml", case.name),
            Origin::BuiltIn(_) | Origin::File(_) => relative,
        };
        Ok(Self { suite, file, case, origin, text })
    }

    /// Checks everything beyond syntax and types: references, manifests, the kubelet
    /// configuration, expressions.
    ///
    /// # Errors
    /// All mistakes.
    pub fn check(self) -> Result<LoadedCase, LoadErrors> {
        let stem = Path::new(&self.file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let findings = check_case(&self.case, stem);
        if findings.is_empty() {
            return Ok(LoadedCase(self));
        }
        let (positions, file) = (self.positions(), self.origin.to_string());
        let problem = |finding: PathProblem| {
            let at = positions.locate(&finding.path);
            let at = finding.word.as_deref().map_or(at, |word| find_word(&self.text, at, word));
            Problem {
                message: finding.message,
                spans: vec![SourceSpan::at(&file, &self.text, at, &finding.note)],
            }
        };
        Err(LoadErrors(findings.into_iter().map(problem).collect()))
    }

    /// Returns `suite/case`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.suite, self.case.name)
    }

    /// Returns the path to pass to `evictlab run`. `None` if the name of the case suffices: for a
    /// built-in case and for one in `./cases`.
    pub fn path(&self) -> Option<&str> {
        match &self.origin {
            Origin::Stdin => Some(STDIN),
            Origin::BuiltIn(_) => None,
            Origin::File(path) => (Path::new(path) != Path::new("cases").join(&self.file)).then_some(path),
        }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the line of each pod, from 1.
    pub fn pod_lines(&self) -> Vec<usize> {
        self.lines("pods", self.case.pods.len())
    }

    /// Returns the line of each ephemeral container, from 1.
    pub fn ephemeral_container_lines(&self) -> Vec<usize> {
        self.lines("ephemeral-containers", self.case.ephemeral_containers.len())
    }

    fn lines(&self, list: &str, len: usize) -> Vec<usize> {
        let positions = self.positions();
        (0..len).map(|item| positions.locate(yaml_path![list, item]).line).collect()
    }

    /// Parses the positions on demand: most cases do not need them.
    fn positions(&self) -> Positions {
        Positions::read(&self.text)
    }

    /// Returns the span of the value at a path.
    pub fn span(&self, path: &[PathSegment], note: &str) -> SourceSpan {
        SourceSpan::at(&self.origin.to_string(), &self.text, self.positions().locate(path), note)
    }
}

/// Reads a case from its document; `None` if it is not a case.
fn case_of_json(json: &str) -> Option<Case> {
    read(&serde_json::from_str(json).ok()?).ok()
}

/// Reads a case from the text of its file.
fn case_of_yaml(text: &str) -> Result<Case, YamlError> {
    // A problem has its own lines of the file, and comments are not read.
    let options = serde_saphyr::options! { with_snippet: false, emit_comments: false };
    serde_saphyr::from_str_with_options(text, options)
}

fn not_utf8(file: &str, bytes: &[u8], at: usize) -> LoadErrors {
    let text = String::from_utf8_lossy(bytes);
    let before = String::from_utf8_lossy(&bytes[..at]);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = format!(
        "the file is not UTF-8: it has the byte 0x{:02x}",
        bytes.get(at).copied().unwrap_or_default()
    );
    LoadErrors(vec![Problem {
        message,
        spans: vec![SourceSpan::at(file, &text, Position { line, column }, "")],
    }])
}

/// Describes why a text is not a case.
fn case_problem(file: &str, text: &str, error: &YamlError) -> Problem {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        let message = "the file is empty: write a case with `evictlab new NAME`";
        return Problem::of_file(message.to_owned(), file.to_owned());
    }
    // Keys that seem to be missing may be in the second document.
    let may_be_two = matches!(
        error.without_snippet(),
        YamlError::MultipleDocuments { .. } | YamlError::SerdeMissingField { .. }
    );
    match second_document(text).filter(|_| may_be_two) {
        Some(at) => Problem {
            message: "one case per file: a second document begins here".to_owned(),
            spans: vec![SourceSpan::at(file, text, at, "move it to another file, or remove the line")],
        },
        None => typed_problem::<Case>(file, text, error),
    }
}
