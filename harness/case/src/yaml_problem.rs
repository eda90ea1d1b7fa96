//! Errors of YAML and JSON documents in terms of their authors.

use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, Error as YamlError, MessageFormatter};

use crate::positions::Position;
use crate::problem::{Problem, SourceSpan, did_you_mean};

/// Describes why a text is not a document of type `T`; `None` if it is one. JSON is YAML. `file` is the name that the problem
/// displays.
pub fn document_problem<T: DeserializeOwned>(file: &str, text: &str) -> Option<Problem> {
    serde_saphyr::from_str::<T>(text).err().map(|error| yaml_problem(file, text, &error))
}

/// Describes an error of serde or of the YAML parser in terms of YAML users. `file` is the name that
/// the problem displays.
pub fn yaml_problem(file: &str, text: &str, error: &YamlError) -> Problem {
    let error = error.without_snippet();
    if let Some(at) = indenting_tab(text) {
        let note = "YAML indents by spaces only";
        return Problem {
            message: "the line begins with a tab".to_owned(),
            spans: vec![SourceSpan::at(file, text, at, note)],
        };
    }
    let suggest = |wrong: &str, valid: &[&'static str]| {
        did_you_mean(wrong, valid.iter().copied()).unwrap_or_else(|| format!("valid: {}", valid.join(", ")))
    };
    let (message, note) = match error {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            (format!("unknown key `{field}`"), suggest(field, expected))
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => {
            (format!("unknown value `{variant}`"), suggest(variant, expected))
        }
        YamlError::SerdeMissingField { field, .. } => {
            (format!("`{field}` is missing"), "required in this mapping".to_owned())
        }
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("the key `{key}` is duplicated"), String::new())
        }
        YamlError::SerdeInvalidType { unexpected, expected, .. }
        | YamlError::SerdeInvalidValue { unexpected, expected, .. } => {
            (format!("expected {expected}, found {unexpected}"), String::new())
        }
        YamlError::Unexpected { expected, .. } => {
            (format!("expected {}", yaml_term(expected)), String::new())
        }
        YamlError::Message { msg, .. } => (msg.clone(), String::new()),
        YamlError::InvalidScalar { ty, .. } if ty.starts_with(['u', 'i']) => {
            ("expected a whole number".to_owned(), String::new())
        }
        other => (DefaultMessageFormatter.format_message(other).into_owned(), syntax_hint(text, other)),
    };
    let at = error.location().map_or(Position { line: 1, column: 1 }, Position::from);
    Problem { message, spans: vec![SourceSpan::at(file, text, at, &note)] }
}

/// Returns the position of the first tab that indents a line. Tabs may indent JSON.
fn indenting_tab(text: &str) -> Option<Position> {
    if text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    text.lines().enumerate().find_map(|(index, line)| {
        let column = line.chars().take_while(|c| *c == ' ').count() + 1;
        let is_tab = line.chars().nth(column - 1) == Some('\t') && !line.trim().is_empty();
        is_tab.then_some(Position { line: index + 1, column })
    })
}

/// Replaces terms of the YAML parser with terms of YAML users.
fn yaml_term(expected: &str) -> &str {
    match expected {
        "sequence start" => "a list",
        "mapping start" => "a mapping",
        "string scalar" => "a string",
        other => other,
    }
}

/// Returns a hint for syntax errors that case files invite: bounds and ranges begin with
/// characters that are special in YAML.
fn syntax_hint(text: &str, error: &YamlError) -> String {
    let Some(at) = error.location().map(Position::from) else { return String::new() };
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    let before: String = line.chars().take(at.column - 1).collect();
    match line.chars().nth(at.column - 1) {
        Some(sign @ ('>' | '=' | '%' | '@' | '`')) => format!("a value that begins with {sign} needs quotes"),
        Some(':') if before.contains(": ") => "a string that contains `: ` needs quotes".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn tabs_indent_json_but_not_yaml() {
        let problem = |text: &str| document_problem::<BTreeMap<String, bool>>("f", text).unwrap().message;
        assert_eq!(problem("{\n\t\"a\": 3\n}\n"), "invalid boolean");
        assert_eq!(problem("a:\n\tb\n"), "the line begins with a tab");
    }
}
