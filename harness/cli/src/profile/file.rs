//! The file of the profiles: where it is, and its tables.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use evictlab_case::{LineMark, Problem, SourceSpan};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ProfileError;

/// Name of the file.
pub(crate) const FILE: &str = "evictlab.toml";

/// The text of a file of profiles.
pub(super) struct ProfileFile {
    /// Path as the user opens it.
    pub(super) shown: String,
    text: String,
    /// The current directory, to which paths are relative.
    here: PathBuf,
    /// The directory of the file.
    dir: PathBuf,
}

impl ProfileFile {
    /// Reads the file of this directory or of the nearest parent, up to the root of the repository;
    /// outside of a repository only that of this directory. `None` if it does not exist.
    pub(super) fn find() -> Result<Option<Self>, ProfileError> {
        let here = env::current_dir().unwrap_or_default();
        let root = here.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(&here);
        for dir in here.ancestors().take_while(|dir| dir.starts_with(root)) {
            let path = dir.join(FILE);
            match fs::read_to_string(&path) {
                Ok(text) => {
                    let (shown, dir) = (shown(&here, &path), dir.to_owned());
                    return Ok(Some(Self { shown, text, dir, here }));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ProfileError::Read { path, source }),
            }
        }
        Ok(None)
    }

    /// Returns the tables of the file.
    pub(super) fn table(&self) -> Result<DeTable<'_>, ProfileError> {
        let parsed = DeTable::parse(&self.text).map(Spanned::into_inner);
        parsed.map_err(|error| {
            let span = error.span().unwrap_or_default();
            self.problem(span, format!("invalid TOML: {}", error.message().replace('\n', ", ")), "")
        })
    }

    /// Returns the table that is a value.
    pub(super) fn table_of<'a, 'i>(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'i>>,
    ) -> Result<&'a DeTable<'i>, ProfileError> {
        let found = value.get_ref().type_str();
        let message = || format!("expected a table for `{key}`, found a value of the type {found}");
        let wrong = || self.problem(value.span(), message(), "");
        value.get_ref().as_table().ok_or_else(wrong)
    }

    /// Returns why the file cannot name this path to write. `None` for a path below the directory
    /// of the file, and for `-`, the standard output.
    pub(super) fn unsafe_path(&self, text: &str) -> Option<&'static str> {
        if text == "-" {
            return None;
        }
        let path = self.here.join(text);
        if path.components().any(|part| part == Component::ParentDir) {
            return Some("contains `..`");
        }
        let Ok(below) = path.strip_prefix(&self.dir) else {
            return Some("is not below the directory of this file");
        };
        let mut part = self.dir.clone();
        for name in below {
            part.push(name);
            if name.eq_ignore_ascii_case(".git") {
                return Some("is in the directory of git");
            }
            if part.is_symlink() {
                return Some("has a symbolic link");
            }
        }
        None
    }

    /// Returns the error of a place in the file.
    pub(super) fn problem(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        note: impl Into<String>,
    ) -> ProfileError {
        let span = self.place(span, note);
        ProfileError::Invalid(Problem { message: message.into(), spans: vec![span] })
    }

    /// Returns a place in the file, with a note about it.
    pub(super) fn place(&self, span: Range<usize>, note: impl Into<String>) -> SourceSpan {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let mark = Some(LineMark::new(&self.text, line, column));
        SourceSpan { file: self.shown.clone(), mark, note: note.into() }
    }
}

/// Returns the path relative to the directory, if it is in it.
fn shown(here: &Path, path: &Path) -> String {
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
