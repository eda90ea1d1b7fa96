//! Loading of suites in two steps: reading, which parses the files, and checking, which finds the
//! mistakes of cases. All problems of all files are reported together.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::case_file::{CaseFile, CasePath, built_in, files_of_path, files_of_root, standard_input};
use super::in_parallel::in_parallel;
use super::parsed_case::{LoadedCase, ParsedCase};
use super::source::Source;
use crate::origin::{Origin, STDIN};
use crate::problem::{LoadErrors, Problem};
use crate::values::Name;
use crate::yaml_path;

/// Case files that were read: the cases that were parsed, and the problems of the other files.
#[derive(Debug, Default)]
pub struct CaseFiles {
    cases: Vec<ParsedCase>,
    problems: Vec<Problem>,
}

impl CaseFiles {
    /// Reads all suites of a source.
    pub fn read(source: &Source) -> Self {
        Self::read_named(source, &[])
    }

    /// Reads the suites and cases with these names: reading and checking all takes longer than a
    /// run of one. Without names, or if a name is unknown, reads all suites.
    pub(crate) fn read_named(source: &Source, names: &[&String]) -> Self {
        let files = match source {
            Source::Dir(root) => files_of_root(root),
            Source::BuiltIn(files) => Ok(files.iter().map(built_in).collect()),
        };
        let mut files = match files {
            Ok(files) => files,
            Err(error) => return Self::from(error),
        };
        let is_known = |name: &&String| files.iter().any(|file| file.path.is_named(name));
        if !names.is_empty() && names.iter().all(is_known) {
            files.retain(|file| names.iter().any(|name| file.path.is_named(name)));
        }
        Self::parse(files)
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

    fn parse(files: Vec<CaseFile>) -> Self {
        let mut read = Self::default();
        let parse = |CaseFile { path, content, json }| ParsedCase::parse(path, &content?, json);
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
    ParsedCase::parse(CasePath { suite, relative, origin: Origin::File(shown) }, bytes, None)?.check()
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
