//! Reading suites: every problem of every file is found and told together.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_saphyr::{DefaultMessageFormatter, Error as YamlError, MessageFormatter};

use super::checks::{Finding, check};
use super::positions::{Position, Positions, Step, way};
use super::problem::{LoadErrors, Mark, Place, Problem, did_you_mean};
use super::schema::Case;

/// A folder with this file in it holds suites of evictlab, and not somebody else's cases.
pub const SCHEMA_FILE: &str = "case.schema.json";

/// What stands before the path of a built-in case where it is shown.
const BUILT_IN: &str = "(built-in) ";

/// Where the suites come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A folder with a folder per suite.
    Dir(PathBuf),
    /// The suites in the binary: a path such as `message/a.yaml`, and the text.
    BuiltIn(&'static [(&'static str, &'static str)]),
}

impl Source {
    /// The folder that was asked for; else `cases/` here, where it has a [`SCHEMA_FILE`]; else the built-in suites.
    pub fn find(asked: Option<PathBuf>, built_in: &'static [(&'static str, &'static str)]) -> Self {
        let here = || Some(PathBuf::from("cases")).filter(|dir| dir.join(SCHEMA_FILE).is_file());
        asked.or_else(here).map_or(Self::BuiltIn(built_in), Self::Dir)
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

/// A case with where it was read from.
#[derive(Clone, Debug)]
pub struct LoadedCase {
    /// The suite: the name of the case's folder.
    pub suite: String,
    /// The file, relative to where the suites lie, such as `message/sidecars-are-named.yaml`.
    pub file: String,
    /// The file as a person here would open it; for a built-in case, that and where it is.
    pub shown: String,
    /// What it says.
    pub case: Case,
    text: Arc<str>,
}

impl LoadedCase {
    /// `suite/case`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.suite, self.case.name)
    }

    /// The path by which `evictlab run` takes it; none for a case that is built in, or in `cases` here, which has a name.
    pub fn path(&self) -> Option<&str> {
        let named =
            self.shown.starts_with(BUILT_IN) || Path::new(&self.shown) == Path::new("cases").join(&self.file);
        (!named).then_some(&self.shown)
    }

    /// The line where each pod begins, from 1.
    pub fn pod_lines(&self) -> Vec<usize> {
        self.lines("pods", self.case.pods.len())
    }

    /// The line where each ephemeral container begins, from 1.
    pub fn ephemeral_container_lines(&self) -> Vec<usize> {
        self.lines("ephemeral-containers", self.case.ephemeral_containers.len())
    }

    fn lines(&self, list: &str, len: usize) -> Vec<usize> {
        let positions = self.positions();
        (0..len).map(|item| positions.of(way![list, item]).line).collect()
    }

    /// Read when they are asked for: most cases have nothing wrong.
    fn positions(&self) -> Positions {
        Positions::read(&self.text)
    }

    /// The place in the file that the way leads to.
    pub(crate) fn place(&self, way: &[Step], note: &str) -> Place {
        place(&self.shown, &self.text, self.positions().of(way), note)
    }
}

/// A case file before it is read.
struct File {
    suite: String,
    relative: String,
    shown: String,
    text: Result<Cow<'static, [u8]>, String>,
}

/// Reads every suite of a source, ordered by suite and case. No file keeps another from being read.
pub fn load(source: &Source) -> Result<Vec<Arc<LoadedCase>>, LoadErrors> {
    let files = match source {
        Source::Dir(root) => files_of_root(root)?,
        Source::BuiltIn(files) => files.iter().map(|(path, text)| built_in(path, text)).collect(),
    };
    read_all(files)
}

/// Reads case files, folders of case files (a suite), and folders of suites, each file once.
pub fn load_paths<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Arc<LoadedCase>>, LoadErrors> {
    let (mut files, mut problems) = (vec![], vec![]);
    for path in paths.iter().map(AsRef::as_ref) {
        match files_of_path(path) {
            Ok(found) => files.extend(found),
            Err(LoadErrors(more)) => problems.extend(more),
        }
    }
    let mut seen = BTreeSet::new();
    files.retain(|file| {
        seen.insert(fs::canonicalize(&file.shown).unwrap_or_else(|_| PathBuf::from(&file.shown)))
    });
    match read_all(files) {
        Ok(cases) if problems.is_empty() => Ok(cases),
        Ok(_) => Err(LoadErrors(problems)),
        Err(LoadErrors(more)) => Err(LoadErrors([problems, more].concat())),
    }
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

/// Reads what is in one case file; `shown` is how errors call the file.
pub fn parse(suite: &str, relative: &str, shown: &str, bytes: &[u8]) -> Result<LoadedCase, LoadErrors> {
    let text: Arc<str> =
        std::str::from_utf8(bytes).map_err(|why| not_utf8(shown, bytes, why.valid_up_to()))?.into();
    let case: Case = serde_saphyr::from_str(&text)
        .map_err(|error| LoadErrors(vec![yaml_problem(shown, &text, error.without_snippet())]))?;
    let stem = Path::new(relative).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let findings = check(&case, stem);
    if !findings.is_empty() {
        let positions = Positions::read(&text);
        let problem = |finding: Finding| {
            let at = positions.of(&finding.way);
            Problem { what: finding.what, places: vec![place(shown, &text, at, &finding.note)] }
        };
        return Err(LoadErrors(findings.into_iter().map(problem).collect()));
    }
    let [suite, file, shown] = [suite, relative, shown].map(str::to_owned);
    Ok(LoadedCase { suite, file, shown, case, text })
}

fn read_all(files: Vec<File>) -> Result<Vec<Arc<LoadedCase>>, LoadErrors> {
    let (mut cases, mut problems) = (vec![], vec![]);
    for File { suite, relative, shown, text } in files {
        let read = match text {
            Ok(text) => parse(&suite, &relative, &shown, &text),
            Err(why) => Err(LoadErrors(vec![about_file(why, shown)])),
        };
        match read {
            Ok(case) => cases.push(Arc::new(case)),
            Err(LoadErrors(more)) => problems.extend(more),
        }
    }
    problems.extend(named_twice(&cases));
    if !problems.is_empty() {
        return Err(LoadErrors(problems));
    }
    cases.sort_by(|one, other| (&one.suite, &one.case.name).cmp(&(&other.suite, &other.case.name)));
    Ok(cases)
}

/// A name must lead to one case: `evictlab run NAME`, and reports that are joined over time.
pub(crate) fn named_twice(cases: &[Arc<LoadedCase>]) -> Vec<Problem> {
    let mut first: BTreeMap<&str, &LoadedCase> = BTreeMap::new();
    let mut problems = vec![];
    for case in cases {
        let Some(before) = first.insert(case.case.name.as_str(), case) else { continue };
        let show = |case: &LoadedCase, note: &str| case.place(way!["name"], note);
        problems.push(Problem {
            what: format!("two cases are named `{}`", case.case.name),
            places: vec![show(before, "here"), show(case, "and here")],
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
        let what = "no suites here: a suite is a folder in it with case files, such as message/a-case.yaml";
        return Err(LoadErrors(vec![about_file(what.to_owned(), root.display().to_string())]));
    }
    Ok(files)
}

fn case_files(dir: &Path) -> Result<Vec<PathBuf>, LoadErrors> {
    let yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    Ok(entries(dir)?.into_iter().filter(|path| yaml(path) && path.is_file()).collect())
}

/// What a folder holds, hidden files left out, in the order of its names.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, LoadErrors> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = read().map_err(|why| {
        LoadErrors(vec![about_file(format!("cannot be read: {why}"), dir.display().to_string())])
    })?;
    paths.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
    paths.sort();
    Ok(paths)
}

fn file_on_disk(path: &Path) -> File {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    // The folder of a plain `a.yaml` is the current one, whose name only its whole path has.
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let suite = name(whole.parent());
    let text = fs::read(path).map(Cow::Owned).map_err(|why| format!("cannot be read: {why}"));
    let relative = format!("{suite}/{}", name(Some(path)));
    File { suite, relative, shown: path.display().to_string(), text }
}

fn built_in(path: &str, text: &'static str) -> File {
    let suite = path.split('/').next().unwrap_or_default().to_owned();
    File {
        suite,
        relative: path.to_owned(),
        shown: format!("{BUILT_IN}{path}"),
        text: Ok(text.as_bytes().into()),
    }
}

fn about_file(what: String, file: String) -> Problem {
    Problem { what, places: vec![Place { file, mark: None, note: String::new() }] }
}

fn place(file: &str, text: &str, at: Position, note: &str) -> Place {
    let mark = Some(Mark::new(text, at.line, at.column));
    Place { file: file.to_owned(), mark, note: note.to_owned() }
}

fn not_utf8(file: &str, bytes: &[u8], at: usize) -> LoadErrors {
    let text = String::from_utf8_lossy(bytes);
    let before = String::from_utf8_lossy(&bytes[..at]);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let what = format!(
        "the file is no UTF-8: it has a byte 0x{:02x} here",
        bytes.get(at).copied().unwrap_or_default()
    );
    LoadErrors(vec![Problem { what, places: vec![place(file, &text, Position { line, column }, "")] }])
}

/// A problem of shape: what serde and the YAML reader found, in the words of a case file.
fn yaml_problem(file: &str, text: &str, error: &YamlError) -> Problem {
    let choose = |wrong: &str, of: &[&'static str]| {
        did_you_mean(wrong, of.iter().copied()).unwrap_or_else(|| format!("known here: {}", of.join(", ")))
    };
    let (what, note) = match error {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            (format!("unknown key `{field}`"), choose(field, expected))
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => {
            (format!("unknown value `{variant}`"), choose(variant, expected))
        }
        YamlError::SerdeMissingField { field, .. } => {
            (format!("`{field}` is missing"), "in the mapping that this is in".to_owned())
        }
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("the key `{key}` is given twice"), String::new())
        }
        YamlError::SerdeInvalidType { unexpected, expected, .. }
        | YamlError::SerdeInvalidValue { unexpected, expected, .. } => {
            (format!("expected {expected}, found {unexpected}"), String::new())
        }
        YamlError::Unexpected { expected, .. } => (format!("expected {}", plain(expected)), String::new()),
        YamlError::Message { msg, .. } => (msg.clone(), String::new()),
        other => (DefaultMessageFormatter.format_message(other).into_owned(), syntax_hint(text, other)),
    };
    let at = error.location().map_or(Position { line: 1, column: 1 }, Position::from);
    Problem { what, places: vec![place(file, text, at, &note)] }
}

/// The YAML reader's words for what it expected, in those of people who write YAML.
fn plain(expected: &str) -> &str {
    match expected {
        "sequence start" => "a list",
        "mapping start" => "a mapping",
        "string scalar" => "a text",
        other => other,
    }
}

/// What to do about the slips of syntax that case files invite: bounds and ranges begin with a sign of YAML's own.
fn syntax_hint(text: &str, error: &YamlError) -> String {
    let Some(at) = error.location().map(Position::from) else { return String::new() };
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    let before: String = line.chars().take(at.column - 1).collect();
    match line.chars().nth(at.column - 1) {
        Some(sign @ ('>' | '=' | '%' | '@' | '`')) => format!("a value that begins with {sign} needs quotes"),
        Some(':') if before.contains(": ") => "a text with `: ` in it needs quotes".to_owned(),
        _ => String::new(),
    }
}
