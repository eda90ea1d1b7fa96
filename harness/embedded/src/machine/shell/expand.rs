//! Expands words.

use std::sync::Arc;

use evictlab_rules::quantity::MIB;

use super::error::ShellError;
use super::interpreter::Shell;
use super::script::{Parameter, PieceKind, Word};

/// The longest value of a variable, in bytes.
const MAX_VALUE: usize = MIB as usize;

/// Returns whether pathname expansion may change an unquoted text.
pub(super) fn has_glob(text: &str) -> bool {
    text.contains(['*', '?']) || text.split_once('[').is_some_and(|(_, rest)| rest.contains(']'))
}

/// The fields of a word, and the one that is being built.
#[derive(Default)]
struct Fields {
    complete: Vec<String>,
    current: Option<String>,
}

impl Fields {
    fn push(&mut self, text: &str) {
        self.current.get_or_insert_default().push_str(text);
    }

    /// Appends the result of an unquoted expansion: white space separates fields.
    fn push_split(&mut self, text: &str) {
        let mut parts = text.split([' ', '\t', '\n']).peekable();
        while let Some(part) = parts.next() {
            if !part.is_empty() {
                self.push(part);
            }
            if parts.peek().is_some() {
                self.complete.extend(self.current.take());
            }
        }
    }
}

impl Shell {
    /// Returns the fields that words expand to.
    pub(super) fn expand_fields(&self, words: &[Word]) -> Result<Vec<String>, ShellError> {
        let mut all = Vec::with_capacity(words.len());
        for word in words {
            let mut fields = Fields::default();
            for piece in &word.0 {
                let text = self.expand_piece(&piece.kind)?;
                match (&piece.kind, text) {
                    (_, text) if piece.quoted => fields.push(&text.unwrap_or_default()),
                    (PieceKind::Text(_), Some(text)) if !text.is_empty() => fields.push(&text),
                    (PieceKind::Text(_), _) | (_, None) => {}
                    (_, Some(text)) if has_glob(&text) => {
                        return Err(ShellError::Unsupported("pathname expansion"));
                    }
                    (_, Some(text)) => fields.push_split(&text),
                }
            }
            all.extend(fields.complete);
            all.extend(fields.current);
        }
        Ok(all)
    }

    /// Returns the string that a word expands to, without splitting it into fields.
    pub(super) fn expand_string(&self, word: &Word) -> Result<String, ShellError> {
        let mut all = String::new();
        for piece in &word.0 {
            all.push_str(&self.expand_piece(&piece.kind)?.unwrap_or_default());
        }
        Ok(all)
    }

    /// Returns `None` for a parameter that is not set.
    fn expand_piece(&self, piece: &PieceKind) -> Result<Option<String>, ShellError> {
        Ok(match piece {
            PieceKind::Text(text) => Some(text.clone()),
            PieceKind::Parameter(parameter) => self.expand_parameter(parameter),
            PieceKind::Arithmetic(expression) => Some(self.evaluate(expression)?.to_string()),
            PieceKind::Capture(slot) => Some(self.captures.get(*slot).cloned().unwrap_or_default()),
        })
    }

    fn expand_parameter(&self, parameter: &Parameter) -> Option<String> {
        match parameter {
            Parameter::Variable(name) => self.variables.get(name).cloned(),
            Parameter::Status => Some(self.status.to_string()),
            Parameter::ShellPid => Some(self.shell_pid.to_string()),
            Parameter::BackgroundPid => self.background_pid.map(|pid| pid.to_string()),
        }
    }

    /// Sets a variable.
    pub(super) fn set_variable(&mut self, name: &str, value: String) -> Result<(), ShellError> {
        if value.len() > MAX_VALUE {
            return Err(ShellError::ValueTooLong(name.to_owned()));
        }
        Arc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        Ok(())
    }
}
