//! Finding and reading of case files, before they are parsed.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

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
    /// Returns whether this is the name of the suite, of the case, or `suite/case`: the name of a
    /// case is that of its file.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let id = Path::new(&self.relative).with_extension("");
        self.suite == name || id == Path::new(name) || id.file_name().is_some_and(|stem| stem == name)
    }
}

/// A case file before it is parsed.
pub(super) struct File {
    pub(super) path: CasePath,
    /// The bytes of the file, or the reason why it was not read.
    pub(super) content: Result<Cow<'static, [u8]>, String>,
}

/// Finds the case files of a path: a case file, a suite or a folder of suites.
pub(super) fn files_of_path(path: &Path) -> Result<Vec<File>, LoadErrors> {
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
pub(super) fn files_of_root(root: &Path) -> Result<Vec<File>, LoadErrors> {
    let mut files = vec![];
    for suite in entries(root)?.iter().filter(|path| path.is_dir()) {
        files.extend(case_files(suite)?.iter().map(|file| file_on_disk(file)));
    }
    if files.is_empty() {
        let what = "no suites found: a suite is a folder of case files, such as message/a-case.yaml";
        return Err(LoadErrors(vec![Problem::of_file(what.to_owned(), root.display().to_string())]));
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
        LoadErrors(vec![Problem::of_file(format!("failed to read: {why}"), dir.display().to_string())])
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
    // The name of a suite is in lines of reports and exported files.
    let content = if suite.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        Err("invalid name of its folder, the suite: it has a control character".to_owned())
    } else {
        fs::read(path).map(Cow::Owned).map_err(|why| format!("failed to read: {why}"))
    };
    let relative = format!("{suite}/{}", name(Some(path)));
    let origin = Origin::File(path.display().to_string());
    File { path: CasePath { suite, relative, origin }, content }
}

/// Reads the standard input to its end.
pub(super) fn standard_input() -> File {
    let mut bytes = vec![];
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    let content = read.map(|_| Cow::Owned(bytes)).map_err(|why| format!("failed to read: {why}"));
    let (suite, relative) = (STDIN_SUITE.to_owned(), String::new());
    File { path: CasePath { suite, relative, origin: Origin::Stdin }, content }
}

/// Returns a file of the binary.
pub(super) fn built_in(path: &str, text: &'static str) -> File {
    let suite = path.split('/').next().unwrap_or_default().to_owned();
    let path = CasePath { suite, relative: path.to_owned(), origin: Origin::BuiltIn(path.to_owned()) };
    File { path, content: Ok(text.as_bytes().into()) }
}
