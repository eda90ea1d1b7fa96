//! Loading of suites in two steps: reading, which parses the files, and checking, which finds the
//! mistakes of cases. All problems of all files are reported together.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::num::NonZero;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use serde_saphyr::Error as YamlError;

use crate::checks::{PathProblem, check};
use crate::origin::{Origin, STDIN};
use crate::positions::{PathSegment, Position, Positions};
use crate::problem::{LoadErrors, Problem, SourceSpan};
use crate::schema::Case;
use crate::values::Name;
use crate::yaml_path;
use crate::yaml_problem::{second_document, typed_problem};

/// File that marks a folder as a folder of evictlab suites.
pub const SCHEMA_FILE: &str = "case.schema.json";

/// Suite of a case from the standard input.
const STDIN_SUITE: &str = "stdin";

/// Minimum number of cases for a thread.
const MIN_SHARE: usize = 16;

/// Source of suites.
#[derive(Clone, Debug)]
pub enum Source {
    /// A folder with one folder per suite.
    Dir(PathBuf),
    /// The suites in the binary: pairs of a path, such as `message/a.yaml`, and the text.
    BuiltIn(&'static [(&'static str, &'static str)]),
}

impl Source {
    /// Returns the folder if one is given; otherwise `./cases` if it has a [`SCHEMA_FILE`];
    /// otherwise the built-in suites.
    pub fn find(dir: Option<PathBuf>, built_in: &'static [(&'static str, &'static str)]) -> Self {
        let default = || Some(PathBuf::from("cases")).filter(|dir| dir.join(SCHEMA_FILE).is_file());
        dir.or_else(default).map_or(Self::BuiltIn(built_in), Self::Dir)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dir(dir) => dir.display().fmt(f),
            Self::BuiltIn(_) => f.write_str("evictlab itself"),
        }
    }
}

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
    /// Parses a case file.
    ///
    /// # Errors
    /// The file is not UTF-8 or YAML, or a value does not have the type of its key.
    fn parse(path: CasePath, bytes: &[u8]) -> Result<Self, LoadErrors> {
        let CasePath { suite, relative, origin } = path;
        let text: Arc<str> = std::str::from_utf8(bytes)
            .map_err(|why| not_utf8(&origin.to_string(), bytes, why.valid_up_to()))?
            .into();
        // A problem has its own lines of the file, and comments are not read.
        let options = serde_saphyr::options! { with_snippet: false, emit_comments: false };
        let mut case: Case = serde_saphyr::from_str_with_options(&text, options)
            .map_err(|error| LoadErrors(vec![case_problem(&origin.to_string(), &text, &error)]))?;
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
        let findings = check(&self.case, stem);
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

/// Place of a case file.
struct CasePath {
    suite: String,
    /// Path in the folder of suites; empty for the standard input.
    relative: String,
    origin: Origin,
}

/// A case file before it is parsed.
struct File {
    path: CasePath,
    /// The bytes of the file, or the reason why it was not read.
    content: Result<Cow<'static, [u8]>, String>,
}

/// Case files that were read: the cases that were parsed, and the problems of the other files.
#[derive(Debug, Default)]
pub struct CaseFiles {
    cases: Vec<ParsedCase>,
    problems: Vec<Problem>,
}

impl CaseFiles {
    /// Reads all suites of a source.
    pub fn read(source: &Source) -> Self {
        match source {
            Source::Dir(root) => files_of_root(root).map_or_else(Self::from, Self::parse),
            Source::BuiltIn(files) => {
                Self::parse(files.iter().map(|(path, text)| built_in(path, text)).collect())
            }
        }
    }

    /// Reads case files, suites (folders of case files), folders of suites, and a case from the
    /// standard input (`-`). A file that is named more than once is read once.
    pub fn read_paths<P: AsRef<Path>>(paths: &[P]) -> Self {
        let (mut files, mut problems) = (vec![], vec![]);
        let is_stdin = |path: &&Path| *path == Path::new(STDIN);
        if paths.iter().map(AsRef::as_ref).any(|path| is_stdin(&path)) {
            files.push(standard_input());
        }
        for path in paths.iter().map(AsRef::as_ref).filter(|path| !is_stdin(path)) {
            match files_of_path(path) {
                Ok(found) => files.extend(found),
                Err(LoadErrors(more)) => problems.extend(more),
            }
        }
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(file.path.origin.canonical()));
        let mut read = Self::parse(files);
        read.problems.splice(0..0, problems);
        read
    }

    fn parse(files: Vec<File>) -> Self {
        let mut read = Self::default();
        let parse = |File { path, content }| match content {
            Ok(bytes) => ParsedCase::parse(path, &bytes),
            Err(why) => Err(LoadErrors(vec![file_problem(why, path.origin.to_string())])),
        };
        for parsed in in_parallel(files, parse) {
            match parsed {
                Ok(case) => read.cases.push(case),
                Err(LoadErrors(more)) => read.problems.extend(more),
            }
        }
        read
    }

    /// Returns the cases, ordered by suite and name.
    ///
    /// # Errors
    /// The files that were not parsed, and names that are not unique.
    pub fn parsed(self) -> Result<Vec<Arc<ParsedCase>>, LoadErrors> {
        into_sorted(self.cases.into_iter().map(Ok), self.problems)
    }

    /// Checks all cases, and returns them ordered by suite and name.
    ///
    /// # Errors
    /// All problems of all files: the mistakes of one case do not prevent the others from being
    /// checked.
    pub fn checked(self) -> Result<Vec<Arc<LoadedCase>>, LoadErrors> {
        into_sorted(in_parallel(self.cases, ParsedCase::check), self.problems)
    }
}

/// Returns the cases, ordered by suite and name, unless there is a problem.
fn into_sorted<C: Borrow<ParsedCase>>(
    results: impl IntoIterator<Item = Result<C, LoadErrors>>,
    mut problems: Vec<Problem>,
) -> Result<Vec<Arc<C>>, LoadErrors> {
    let mut cases = vec![];
    for case in results {
        match case {
            Ok(case) => cases.push(Arc::new(case)),
            Err(LoadErrors(more)) => problems.extend(more),
        }
    }
    problems.extend(duplicate_names(&cases));
    if !problems.is_empty() {
        return Err(LoadErrors(problems));
    }
    cases.sort_by_key(sort_key);
    Ok(cases)
}

/// Applies `work` to all items, on all processors. Returns the results in the order of the items.
fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(threads).max(MIN_SHARE);
    if items.len() <= share {
        return items.into_iter().map(work).collect();
    }
    let (mut items, work) = (items.into_iter().peekable(), &work);
    thread::scope(|scope| {
        let mut parts = vec![];
        while items.peek().is_some() {
            let share: Vec<T> = items.by_ref().take(share).collect();
            parts.push(scope.spawn(move || share.into_iter().map(work).collect::<Vec<R>>()));
        }
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

impl From<LoadErrors> for CaseFiles {
    fn from(LoadErrors(problems): LoadErrors) -> Self {
        Self { cases: vec![], problems }
    }
}

/// Returns the key by which cases are ordered.
pub(crate) fn sort_key<C: Borrow<ParsedCase>>(case: &Arc<C>) -> (String, Name) {
    let case: &ParsedCase = (**case).borrow();
    (case.suite.clone(), case.case.name.clone())
}

/// Reads and checks all suites of a source: [`CaseFiles::checked`].
///
/// # Errors
/// All problems of all files.
pub fn load(source: &Source) -> Result<Vec<Arc<LoadedCase>>, LoadErrors> {
    CaseFiles::read(source).checked()
}

/// Reads and checks case files and folders: [`CaseFiles::read_paths`].
///
/// # Errors
/// All problems of all files.
pub fn load_paths<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Arc<LoadedCase>>, LoadErrors> {
    CaseFiles::read_paths(paths).checked()
}

/// Parses and checks a case file; `shown` is the path that errors display.
///
/// # Errors
/// All problems of the file.
pub fn parse(suite: &str, relative: &str, shown: &str, bytes: &[u8]) -> Result<LoadedCase, LoadErrors> {
    let [suite, relative, shown] = [suite, relative, shown].map(str::to_owned);
    ParsedCase::parse(CasePath { suite, relative, origin: Origin::File(shown) }, bytes)?.check()
}

fn files_of_path(path: &Path) -> Result<Vec<File>, LoadErrors> {
    if !path.is_dir() {
        return Ok(vec![file_on_disk(path)]);
    }
    let files = case_files(path)?;
    if files.is_empty() {
        files_of_root(path)
    } else {
        Ok(files.iter().map(|file| file_on_disk(file)).collect())
    }
}

/// Reports cases with the same name: a name must identify one case, for `evictlab run NAME` and
/// for reports that are compared over time.
pub fn duplicate_names<C: Borrow<ParsedCase>>(cases: &[Arc<C>]) -> Vec<Problem> {
    let mut first: BTreeMap<&str, &ParsedCase> = BTreeMap::new();
    let mut problems = vec![];
    for case in cases.iter().map(|case| (**case).borrow()) {
        let Some(before) = first.insert(case.case.name.as_str(), case) else { continue };
        let show = |case: &ParsedCase, note: &str| case.span(yaml_path!["name"], note);
        problems.push(Problem {
            message: format!("two cases are named `{}`", case.case.name),
            spans: vec![show(before, "first"), show(case, "second")],
        });
    }
    problems
}

fn files_of_root(root: &Path) -> Result<Vec<File>, LoadErrors> {
    let mut files = vec![];
    for suite in entries(root)?.iter().filter(|path| path.is_dir()) {
        files.extend(case_files(suite)?.iter().map(|file| file_on_disk(file)));
    }
    if files.is_empty() {
        let what = "no suites found: a suite is a folder of case files, such as message/a-case.yaml";
        return Err(LoadErrors(vec![file_problem(what.to_owned(), root.display().to_string())]));
    }
    Ok(files)
}

fn case_files(dir: &Path) -> Result<Vec<PathBuf>, LoadErrors> {
    let yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    Ok(entries(dir)?.into_iter().filter(|path| yaml(path) && path.is_file()).collect())
}

/// Returns the entries of a folder except for hidden files, sorted by name.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, LoadErrors> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = read().map_err(|why| {
        LoadErrors(vec![file_problem(format!("failed to read: {why}"), dir.display().to_string())])
    })?;
    paths.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
    paths.sort();
    Ok(paths)
}

fn file_on_disk(path: &Path) -> File {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    // Canonical, because the folder of the path `a.yaml` has no name.
    let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let suite = name(canonical.parent());
    let content = fs::read(path).map(Cow::Owned).map_err(|why| format!("failed to read: {why}"));
    let relative = format!("{suite}/{}", name(Some(path)));
    let origin = Origin::File(path.display().to_string());
    File { path: CasePath { suite, relative, origin }, content }
}

/// Reads the standard input to its end.
fn standard_input() -> File {
    let mut bytes = vec![];
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    let content = read.map(|_| Cow::Owned(bytes)).map_err(|why| format!("failed to read: {why}"));
    let (suite, relative) = (STDIN_SUITE.to_owned(), String::new());
    File { path: CasePath { suite, relative, origin: Origin::Stdin }, content }
}

fn built_in(path: &str, text: &'static str) -> File {
    let suite = path.split('/').next().unwrap_or_default().to_owned();
    let path = CasePath { suite, relative: path.to_owned(), origin: Origin::BuiltIn(path.to_owned()) };
    File { path, content: Ok(text.as_bytes().into()) }
}

fn file_problem(message: String, file: String) -> Problem {
    Problem { message, spans: vec![SourceSpan { file, mark: None, note: String::new() }] }
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

/// Returns the position of the first occurrence of a word at or after a position; the position
/// itself if an alias is there, or if the rest of the text does not contain the word as it is.
fn find_word(text: &str, from: Position, word: &str) -> Position {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for (index, line) in text.lines().enumerate().skip(from.line - 1) {
        let skipped = if index + 1 == from.line { from.column - 1 } else { 0 };
        let start = line.char_indices().nth(skipped).map_or(line.len(), |(at, _)| at);
        if index + 1 == from.line && line[start..].starts_with('*') {
            return from;
        }
        let found = line[start..].match_indices(word).find(|(at, _)| {
            let (before, after) = line[start..].split_at(*at);
            !before.ends_with(is_part) && !after[word.len()..].starts_with(is_part)
        });
        if let Some((at, _)) = found {
            let column = line[..start + at].chars().count() + 1;
            return Position { line: index + 1, column };
        }
    }
    from
}

/// Describes why a text is not a case.
fn case_problem(file: &str, text: &str, error: &YamlError) -> Problem {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        let message = "the file is empty: write a case with `evictlab new NAME`";
        return file_problem(message.to_owned(), file.to_owned());
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
