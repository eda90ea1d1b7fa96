//! Finding and reading of case files, before they are parsed.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::source::BuiltInCase;
use crate::origin::{Origin, STDIN_SUITE};
use crate::problem::{LoadErrors, Problem};

/// Place of a case file.
pub(super) struct CasePath {
    pub(super) suite: String,
    /// Path in the folder of suites; empty for the standard input.
    pub(super) relative: String,
    pub(super) origin: Origin,
}

impl CasePath {
    /// Returns whether this is the name of the suite, of the case, or `suite/case`. The name of a
    /// case is that of its file.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let stem = Path::new(&self.relative).file_stem().and_then(OsStr::to_str);
        is_named(&self.suite, stem.unwrap_or_default(), name)
    }
}

/// Returns whether `name` is that of the suite, of the case, or `suite/case`.
pub(crate) fn is_named(suite: &str, case: &str, name: &str) -> bool {
    name == suite || name == case || name.split_once('/') == Some((suite, case))
}

/// A case file before it is parsed.
pub(super) struct CaseFile {
    pub(super) path: CasePath,
    /// The bytes of the file, or the reason why it was not read.
    pub(super) content: Result<Cow<'static, [u8]>, LoadErrors>,
    /// The document as JSON, if it is known.
    pub(super) json: Option<&'static str>,
}

/// Finds the case files of a path: a case file, a suite or a folder of suites.
pub(super) fn files_of_path(path: &Path) -> Result<Vec<CaseFile>, LoadErrors> {
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

/// Finds the case files of a folder of suites.
pub(super) fn files_of_root(root: &Path) -> Result<Vec<CaseFile>, LoadErrors> {
    let mut files = vec![];
    for suite in entries(root)?.iter().filter(|path| path.is_dir()) {
        files.extend(case_files(suite)?.iter().map(|file| file_on_disk(file)));
    }
    if files.is_empty() {
        let what = "no suites found: a suite is a folder of case files, such as message/a-case.yaml";
        return Err(file_error(what.to_owned(), root.display()));
    }
    Ok(files)
}

fn case_files(dir: &Path) -> Result<Vec<PathBuf>, LoadErrors> {
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    Ok(entries(dir)?.into_iter().filter(|path| is_yaml(path) && path.is_file()).collect())
}

/// Returns the error of a file or folder; `shown` is its displayed path.
fn file_error(message: String, shown: impl Display) -> LoadErrors {
    LoadErrors(vec![Problem::of_file(message, shown.to_string())])
}

/// Returns the entries of a folder except for hidden files, sorted by name.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, LoadErrors> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths =
        read().map_err(|why| file_error(format!("failed to read folder: {why}"), dir.display()))?;
    paths.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
    paths.sort();
    Ok(paths)
}

fn file_on_disk(path: &Path) -> CaseFile {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    // Canonical, because the folder of the path `a.yaml` has no name.
    let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let suite = name(canonical.parent());
    // Suite names appear in single lines of reports and exported files.
    let content = if suite.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        let what = "invalid suite name: its folder's name has a control character";
        Err(file_error(what.to_owned(), path.display()))
    } else {
        let read = fs::read(path).map(Cow::Owned);
        read.map_err(|why| file_error(format!("failed to read file: {why}"), path.display()))
    };
    let relative = format!("{suite}/{}", name(Some(path)));
    let origin = Origin::File(path.display().to_string());
    CaseFile { path: CasePath { suite, relative, origin }, content, json: None }
}

/// Reads the standard input to its end.
pub(super) fn standard_input() -> CaseFile {
    let mut bytes = vec![];
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    let read = read.map(|_| Cow::Owned(bytes));
    let content =
        read.map_err(|why| file_error(format!("failed to read standard input: {why}"), Origin::Stdin));
    let (suite, relative) = (STDIN_SUITE.to_owned(), String::new());
    CaseFile { path: CasePath { suite, relative, origin: Origin::Stdin }, content, json: None }
}

/// Returns a file of the binary.
pub(super) fn built_in(file: &BuiltInCase) -> CaseFile {
    let BuiltInCase { path, text, json } = *file;
    let suite = path.split('/').next().unwrap_or_default().to_owned();
    let path = CasePath { suite, relative: path.to_owned(), origin: Origin::BuiltIn(path.to_owned()) };
    CaseFile { path, content: Ok(text.as_bytes().into()), json }
}
