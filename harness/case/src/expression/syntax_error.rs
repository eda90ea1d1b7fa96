//! Rewrites errors of the CEL parser for authors of expressions.

use cel::{ParseError, ParseErrors};

/// Start of the messages of the parser about a token that it did not expect.
const SYNTAX_ERROR_PREFIX: &str = "Syntax error: ";
/// Start of the messages of the parser about text that is not a token.
const NOT_A_TOKEN: &str = "token recognition error at: '";

/// Starts of the messages of the parser about its limits.
const LIMIT_PREFIXES: [&str; 2] = ["Recursion limit", "error recovery attempt limit"];

/// Operators of two characters.
const LONG_OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "&&", "||"];

/// Tokens that can end a part of an expression, or separate parts.
const CLOSING: [&str; 5] = [")", "]", "}", ":", ","];

/// Describes the first error of an expression: what is where, and what was expected instead.
pub(super) fn describe(text: &str, errors: &ParseErrors) -> String {
    if text.trim().is_empty() {
        return "the expression is empty".to_owned();
    }
    let is_syntax = |error: &&ParseError| error.msg.starts_with(SYNTAX_ERROR_PREFIX);
    match errors.errors.iter().find(is_syntax).or(errors.errors.first()) {
        Some(error) => describe_error(text, error),
        None => "it is not CEL".to_owned(),
    }
}

fn describe_error(text: &str, error: &ParseError) -> String {
    let place = ErrorPosition::new(text, error.pos);
    let token = token_at(text, error.pos);
    let message = error.msg.strip_prefix(SYNTAX_ERROR_PREFIX).unwrap_or(&error.msg);
    if let Some(token) = message.strip_prefix(NOT_A_TOKEN) {
        return describe_token(token, &place);
    }
    if let Some(word) = message.strip_prefix("reserved identifier: ") {
        return format!("`{word}` at {place} is a reserved word");
    }
    match message {
        "argument must be a simple name" => {
            format!("expected a name at {place}: the variable of the macro")
        }
        "invalid argument to has() macro" => {
            format!("expected a field at {place}, such as has(pods.web.status)")
        }
        "invalid int literal" | "invalid uint literal" | "invalid double literal" => {
            format!("the number at {place} is out of range")
        }
        _ if message.starts_with("invalid string literal")
            || message.starts_with("invalid bytes literal") =>
        {
            format!("unknown escape sequence in the text at {place}")
        }
        _ if LIMIT_PREFIXES.iter().any(|start| message.starts_with(start)) => {
            "it is nested too deeply".to_owned()
        }
        _ => {
            let unexpected =
                token.map_or("unexpected end".to_owned(), |token| format!("unexpected `{token}` at {place}"));
            match expected(text, error.pos, message) {
                Some(expected) => format!("{unexpected}, expected {expected}"),
                None => unexpected,
            }
        }
    }
}

/// Describes text that is not a token; the parser states it with the characters that follow.
fn describe_token(token: &str, place: &ErrorPosition) -> String {
    let is_text = token.trim_start_matches(['b', 'B', 'r', 'R']).starts_with(['"', '\'']);
    match token.chars().next() {
        _ if is_text && token.contains('\\') => format!("unknown escape sequence in the text at {place}"),
        _ if is_text => format!("the text at {place} has no closing quote"),
        Some(sign) => {
            let instead = match sign {
                '=' if token.starts_with("=>") => ", did you mean `>=`?",
                '=' if token.starts_with("=<") => ", did you mean `<=`?",
                '=' => ", did you mean `==`?",
                '&' => ", did you mean `&&`?",
                '|' => ", did you mean `||`?",
                _ => "",
            };
            format!("unexpected `{sign}` at {place}{instead}")
        }
        None => format!("unexpected text at {place}"),
    }
}

/// Returns what the parser expected at a position, if it states that.
fn expected(text: &str, position: (isize, isize), message: &str) -> Option<String> {
    if message.starts_with("no viable alternative") {
        let is_field = text_before(text, position).trim_end().ends_with('.');
        return Some(if is_field { "a name after `.`" } else { "a name or a value" }.to_owned());
    }
    if let Some(missing) = message.strip_prefix("missing '") {
        return Some(format!("`{}`", missing.split('\'').next()?));
    }
    let (_, tokens) = message.split_once("expecting ")?;
    if tokens.contains("IDENTIFIER") {
        return Some("a name or a value".to_owned());
    }
    let closing = CLOSING.into_iter().filter(|token| tokens.contains(&format!("'{token}'")));
    let closing = closing.map(|token| format!("`{token}`"));
    // An operator can continue every expression that can end.
    let operator = (tokens.contains("'=='") || tokens == "<EOF>").then(|| "an operator".to_owned());
    let end = tokens.contains("<EOF>").then(|| "the end".to_owned());
    let all: Vec<String> = operator.into_iter().chain(closing).chain(end).collect();
    (!all.is_empty()).then(|| all.join(" or "))
}

/// Returns the text before a position: a line and a column, from 1.
fn text_before(text: &str, (line, column): (isize, isize)) -> String {
    let (line, column) = (zero_based(line), zero_based(column));
    let mut before: String = text.split_inclusive('\n').take(line).collect();
    before.extend(text.split('\n').nth(line).unwrap_or_default().chars().take(column));
    before
}

/// Returns the token at a position; `None` at the end.
fn token_at(text: &str, (line, column): (isize, isize)) -> Option<String> {
    let rest: String = text.split('\n').nth(zero_based(line))?.chars().skip(zero_based(column)).collect();
    let first = rest.chars().next()?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if is_word(first) {
        return Some(rest.chars().take_while(|c| is_word(*c)).collect());
    }
    if ['"', '\''].contains(&first) {
        let length = rest.chars().skip(1).take_while(|c| *c != first).count() + 2;
        return Some(rest.chars().take(length).collect());
    }
    let operator = LONG_OPERATORS.into_iter().find(|operator| rest.starts_with(operator));
    Some(operator.map_or_else(|| first.to_string(), str::to_owned))
}

/// Returns the index of a line or column that is counted from 1.
fn zero_based(number: isize) -> usize {
    usize::try_from(number - 1).unwrap_or(0)
}

/// A position in an expression, displayed with its line if the expression has several.
struct ErrorPosition {
    line: isize,
    column: isize,
    shows_line: bool,
}

impl ErrorPosition {
    fn new(text: &str, (line, column): (isize, isize)) -> Self {
        Self { line, column: column.max(1), shows_line: text.trim_end().contains('\n') }
    }
}

impl std::fmt::Display for ErrorPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.shows_line {
            write!(f, "line {}, ", self.line)?;
        }
        write!(f, "column {}", self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_state_what_was_found_where() {
        for (text, expected) in [
            ("", "the expression is empty"),
            ("pods.web. ==", "unexpected `==` at column 11, expected a name after `.`"),
            ("pods.web.", "unexpected end, expected a name after `.`"),
            ("pods..web", "unexpected `.` at column 6, expected a name after `.`"),
            ("pods.web ==", "unexpected end, expected a name or a value"),
            ("t > 5 && || t", "unexpected `||` at column 10, expected a name or a value"),
            ("t >> 5", "unexpected `>` at column 4, expected a name or a value"),
            ("a b", "unexpected `b` at column 3, expected an operator or the end"),
            ("1)", "unexpected `)` at column 2, expected an operator or the end"),
            ("'a' 'b c'", "unexpected `'b c'` at column 5, expected an operator or the end"),
            ("'éé' b", "unexpected `b` at column 6, expected an operator or the end"),
            ("t > 5 and t < 6", "unexpected `and` at column 7, expected an operator or the end"),
            ("(1", "unexpected end, expected `)`"),
            ("[1", "unexpected end, expected `]` or `,`"),
            ("[1,,2]", "unexpected `,` at column 4, expected `]`"),
            ("{'a' 1}", "unexpected `1` at column 6, expected `:`"),
            ("pods.web = 1", "unexpected `=` at column 10, did you mean `==`?"),
            ("a => b", "unexpected `=` at column 3, did you mean `>=`?"),
            ("pods & t", "unexpected `&` at column 6, did you mean `&&`?"),
            ("#", "unexpected `#` at column 1"),
            ("'abc", "the text at column 1 has no closing quote"),
            ("'\\q'", "unknown escape sequence in the text at column 1"),
            ("99999999999999999999", "the number at column 1 is out of range"),
            ("for == 1", "`for` at column 1 is a reserved word"),
            ("pods.map(1, t)", "expected a name at column 10: the variable of the macro"),
            ("has(t)", "expected a field at column 5, such as has(pods.web.status)"),
            ("t > 5 &&\n  && t", "unexpected `&&` at line 2, column 3, expected a name or a value"),
        ] {
            let errors = cel::Program::compile(text).unwrap_err();
            assert_eq!(describe(text, &errors), expected, "{text}");
        }
        for text in [
            "pods[",
            "t ? 1",
            "t ? : 1",
            "`x`",
            "size(",
            "{1:",
            "\u{e9}.b",
            "((((((((((((((",
            "a\nb",
            "1 +\n",
        ] {
            let described = describe(text, &cel::Program::compile(text).unwrap_err());
            let jargon = ["<", "Syntax", "viable", "input", "Context", "IDENTIFIER", "extraneous"];
            assert!(!jargon.iter().any(|word| described.contains(word)), "{text:?}: {described}");
        }
    }
}
