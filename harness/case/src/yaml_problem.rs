//! Errors of YAML and JSON documents in terms of their authors.

use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, Error as YamlError, MessageFormatter};

use crate::positions::Position;
use crate::problem::{Problem, SourceSpan, did_you_mean};
use crate::serde_words::wrong_value;

/// Describes why a text is not a document of type `T`; `None` if it is one. JSON is YAML. `file` is
/// the name that the problem displays.
pub fn document_problem<T: DeserializeOwned>(file: &str, text: &str) -> Option<Problem> {
    serde_saphyr::from_str::<T>(text).err().map(|error| typed_problem::<T>(file, text, &error))
}

/// Describes an error of a document of type `T`, as [`yaml_problem`] does, with the words that the
/// type has in the place of a list.
pub(crate) fn typed_problem<T: DeserializeOwned>(file: &str, text: &str, error: &YamlError) -> Problem {
    let mut problem = yaml_problem(file, text, error);
    if matches!(original(error), YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. })
        && let Some(words) = words_in_place_of_list::<T>(text, position(error))
    {
        problem.message = format!("expected one of {}, not a list", words.join(", "));
    }
    problem
}

/// Describes an error of serde or of the YAML parser in terms of YAML users. `file` is the name
/// that the problem displays.
pub fn yaml_problem(file: &str, text: &str, error: &YamlError) -> Problem {
    if let Some(at) = indenting_tab(text) {
        let note = "YAML indents by spaces only";
        return Problem {
            message: "the line begins with a tab".to_owned(),
            spans: vec![SourceSpan::at(file, text, at, note)],
        };
    }
    let at = position(error);
    let error = original(error);
    let (mut message, note) = description(text, at, error);
    let mut place = at;
    if let Some((key, key_place)) = key_without_value(text, at).filter(|_| is_about_value(error)) {
        message = format!("`{key}` has no value");
        place = key_place;
    } else if let (YamlError::MultipleDocuments { .. }, Some(second)) = (error, second_document(text)) {
        place = second;
    }
    Problem { message, spans: vec![SourceSpan::at(file, text, place, &note)] }
}

/// Returns the error that an error about an alias, or with lines of the file, is about.
fn original(mut error: &YamlError) -> &YamlError {
    while let YamlError::AliasError { error: inner, .. } | YamlError::WithSnippet { error: inner, .. } = error
    {
        error = inner;
    }
    error
}

/// Returns the position of an error; of one about an alias, the position of the alias.
fn position(error: &YamlError) -> Position {
    error.without_snippet().location().map_or(Position { line: 1, column: 1 }, Position::from)
}

/// Returns a message, and a note that may be empty.
fn description(text: &str, at: Position, error: &YamlError) -> (String, String) {
    let suggest = |wrong: &str, valid: &[&'static str]| {
        did_you_mean(wrong, valid.iter().copied()).unwrap_or_else(|| format!("valid: {}", valid.join(", ")))
    };
    let without_note = |message: &str| (message.to_owned(), String::new());
    match error {
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
        YamlError::DuplicateMappingKey { key: None, .. } => without_note("a key is duplicated"),
        YamlError::SerdeInvalidType { unexpected, expected, .. }
        | YamlError::SerdeInvalidValue { unexpected, expected, .. } => wrong_value(unexpected, expected),
        YamlError::Unexpected { expected, .. } => {
            (format!("expected {}", expected_node(expected, text, at)), String::new())
        }
        YamlError::Message { msg, .. } => (msg.clone(), String::new()),
        YamlError::InvalidScalar { ty, .. } => invalid_scalar(text, at, ty),
        YamlError::NonFiniteFloat { value, .. } => {
            (format!("expected a finite number, found {value}"), String::new())
        }
        YamlError::NullIntoString { .. } => without_note("a value is missing"),
        YamlError::MultipleDocuments { .. } => {
            without_note("expected one document: a second document begins here")
        }
        YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            without_note("expected a word, not a list")
        }
        YamlError::UnexpectedValueForUnitEnumVariant { .. } => {
            without_note("expected a word alone, without a value")
        }
        YamlError::ExpectedStringKeyForExternallyTaggedEnum { .. } => {
            without_note("expected a mapping with one key")
        }
        // Only faults are mappings with one key.
        YamlError::ExpectedMappingEndAfterEnumVariantValue { .. } => {
            ("one fault per entry".to_owned(), "state it as another entry of the list".to_owned())
        }
        YamlError::RecursiveReferencesRequireWeakTypes { .. } => {
            without_note("an alias refers to the anchor that contains it")
        }
        YamlError::UnknownAnchor { .. } => (
            "the alias refers to an unknown anchor".to_owned(),
            "a text that begins with * needs quotes".to_owned(),
        ),
        YamlError::MergeValueNotMapOrSeqOfMaps { .. } => {
            without_note("`<<` needs a mapping or a list of mappings")
        }
        YamlError::InvalidBinaryBase64 { .. } => without_note("the value is not base64"),
        other => (DefaultMessageFormatter.format_message(other).into_owned(), syntax_hint(text, other)),
    }
}

/// Returns whether an error is about a value, which may be missing.
fn is_about_value(error: &YamlError) -> bool {
    matches!(
        error,
        YamlError::NullIntoString { .. }
            | YamlError::InvalidScalar { .. }
            | YamlError::SerdeUnknownVariant { .. }
            | YamlError::SerdeInvalidType { .. }
            | YamlError::Unexpected { .. }
    )
}

/// Returns the key whose value is missing or null, with its position. The parser locates a missing
/// value at the colon of its key.
fn key_without_value(text: &str, at: Position) -> Option<(String, Position)> {
    let line = text.lines().nth(at.line - 1)?;
    let before: String = line.chars().take(at.column - 1).collect();
    let mut rest = line.chars().skip(at.column - 1);
    let before = match word(text, at).as_str() {
        "~" | "null" => before.trim_end().strip_suffix(':')?,
        _ if rest.next()? == ':' && rest.next().is_none_or(|c| c.is_whitespace() || ",]}".contains(c)) => {
            &before
        }
        _ => return None,
    };
    let key = before.rsplit([' ', '\t', ',', '[', '{']).next()?;
    let column = before.chars().count() - key.chars().count() + 1;
    let key = key.trim_matches(['"', '\'']);
    (!key.is_empty()).then(|| (key.to_owned(), Position { line: at.line, column }))
}

/// Returns the plain word at a position.
fn word(text: &str, at: Position) -> String {
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    line.chars().skip(at.column - 1).take_while(|c| !c.is_whitespace() && !",]}".contains(*c)).collect()
}

/// Describes a scalar that is not of the type of its key, in the words of the YAML parser.
fn invalid_scalar(text: &str, at: Position, ty: &str) -> (String, String) {
    let message = match ty {
        "boolean" => "expected true or false".to_owned(),
        "floating point" => "expected a number".to_owned(),
        ty if ty.starts_with(['u', 'i']) => match word(text, at).parse::<i128>() {
            Ok(number) => format!("the number {number} is out of range"),
            Err(_) => "expected a whole number".to_owned(),
        },
        other => format!("invalid {other}"),
    };
    (message, String::new())
}

/// Returns the position of the line that begins a second document.
pub(crate) fn second_document(text: &str) -> Option<Position> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', '%']);
    let is_marker = |line: &str| {
        line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let lines = text.lines().enumerate().skip_while(|(_, line)| !is_content(line));
    // The first line with content may be the marker of the first document.
    let (index, _) = lines.skip(1).find(|(_, line)| is_marker(line))?;
    Some(Position { line: index + 1, column: 1 })
}

/// Returns the words that a type has in the place of a list in brackets; `None` if it does not have
/// words there.
fn words_in_place_of_list<T: DeserializeOwned>(text: &str, at: Position) -> Option<Vec<&'static str>> {
    let line: usize = text.split_inclusive('\n').take(at.line - 1).map(str::len).sum();
    let (column, _) = text[line..].char_indices().nth(at.column - 1)?;
    let (before, list) = text.split_at(line + column);
    let mut depth = 0_usize;
    let (end, _) = list.char_indices().find(|(_, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    // The type rejects a number and states its words.
    let changed = format!("{before}0{}", list[end..].strip_prefix(']')?);
    let error = serde_saphyr::from_str::<T>(&changed).err()?;
    match original(&error) {
        YamlError::SerdeUnknownVariant { expected, .. } if position(&error) == at => Some(expected.clone()),
        _ => None,
    }
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
fn expected_node<'a>(expected: &'a str, text: &str, at: Position) -> &'a str {
    match (expected, word(text, at).chars().next()) {
        ("sequence start", _) => "a list",
        ("mapping start", _) => "a mapping",
        ("string scalar" | "scalar", Some('[' | '-')) => "one value, not a list",
        ("string scalar" | "scalar", Some('*') | None) => "one value",
        ("string scalar" | "scalar", _) => "one value, not a mapping",
        ("value" | "single YAML node", _) => "a value",
        (other, _) => other,
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

    use serde::Deserialize;

    use super::*;

    #[test]
    fn tabs_indent_json_but_not_yaml() {
        let problem = |text: &str| document_problem::<BTreeMap<String, bool>>("f", text).unwrap().message;
        assert_eq!(problem("{\n\t\"a\": 3\n}\n"), "expected true or false");
        assert_eq!(problem("a:\n\tb\n"), "the line begins with a tab");
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its errors count")]
    struct Document {
        text: Option<String>,
        name: String,
        size: Option<Size>,
        port: Option<u16>,
        share: Option<f64>,
        list: Option<Vec<String>>,
    }

    #[test]
    fn errors_have_the_words_of_yaml() {
        for (text, message, place) in [
            ("name: a\n---\nname: b\n", "expected one document: a second document begins here", (2, 1)),
            ("# c\n---\nname: a\n---\n", "expected one document: a second document begins here", (4, 1)),
            ("name:\nsize: small\n", "`name` has no value", (1, 1)),
            ("size: small\nname: ~\n", "`name` has no value", (2, 1)),
            ("{size: small, \"name\": }\n", "`name` has no value", (1, 15)),
            ("list: [a, ~]\n", "a value is missing", (1, 11)),
            ("name: a\nsize:\n  - small\n", "expected a word, not a list", (3, 3)),
            ("name: a\nsize: [[small], x]\n", "expected one of small, large, not a list", (2, 7)),
            ("name: a\nsize: {small: 1}\n", "expected a word alone, without a value", (2, 15)),
            ("name: a\nport: x\n", "expected a whole number", (2, 7)),
            ("name: a\nport: 70000\n", "the number 70000 is out of range", (2, 7)),
            ("name: a\nport: [1]\n", "expected one value, not a list", (2, 7)),
            ("name: a\nport: {b: 1}\n", "expected one value, not a mapping", (2, 7)),
            ("name: a\nshare: x\n", "expected a number", (2, 8)),
            ("name: a\nlist: x\n", "expected a list", (2, 7)),
            ("name: &x a\nlist: *x\n", "expected a list", (2, 7)),
            ("name: *x\n", "the alias refers to an unknown anchor", (1, 7)),
            ("name: a\nlist: &x [*x]\n", "an alias refers to the anchor that contains it", (2, 11)),
        ] {
            let problem = document_problem::<Document>("f", text).unwrap();
            let mark = problem.spans[0].mark.as_ref().unwrap();
            assert_eq!((problem.message.as_str(), (mark.line, mark.column)), (message, place), "{text}");
        }
    }
}
