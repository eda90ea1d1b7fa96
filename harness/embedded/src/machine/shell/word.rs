//! Compiles the words of a script.

use brush_parser::ast::ArithmeticExpr;
use brush_parser::word::{
    Parameter as AstParameter, ParameterExpr, SpecialParameter, WordPiece, WordPieceWithSource, parse,
};

use super::compile::{Compiler, parser_options};
use super::error::ShellError;
use super::expand::has_glob;
use super::script::{Parameter, Piece, PieceKind, Word};

impl Compiler {
    /// Compiles a word that expands to one string.
    pub(super) fn word(&mut self, text: &str) -> Result<Word, ShellError> {
        let pieces = parse(text, &parser_options()).map_err(|_| ShellError::Syntax)?;
        let mut word = Word::default();
        self.pieces(&pieces, false, &mut word)?;
        Ok(word)
    }

    /// Compiles a word that expands to fields, of a command or of `for`.
    pub(super) fn field_word(&mut self, text: &str) -> Result<Word, ShellError> {
        let word = self.word(text)?;
        let is_glob = |piece: &Piece| match &piece.kind {
            PieceKind::Text(text) => !piece.quoted && has_glob(text),
            _ => false,
        };
        if word.0.iter().any(is_glob) {
            return Err(ShellError::Unsupported("pathname expansion"));
        }
        Ok(word)
    }

    fn pieces(
        &mut self,
        pieces: &[WordPieceWithSource],
        quoted: bool,
        word: &mut Word,
    ) -> Result<(), ShellError> {
        for piece in pieces {
            let (kind, quoted) = match &piece.piece {
                WordPiece::Text(text) => (PieceKind::Text(text.clone()), quoted),
                WordPiece::SingleQuotedText(text) => (PieceKind::Text(text.clone()), true),
                WordPiece::DoubleQuotedSequence(pieces) => {
                    // Empty quotes are an empty field.
                    word.0.push(Piece { kind: PieceKind::Text(String::new()), quoted: true });
                    self.pieces(pieces, true, word)?;
                    continue;
                }
                WordPiece::EscapeSequence(text) => {
                    let text = text.get(1..).unwrap_or_default();
                    // A backslash at the end of a line joins it with the next one.
                    let text = if text == "\n" { "" } else { text };
                    (PieceKind::Text(text.to_owned()), true)
                }
                WordPiece::ParameterExpansion(expansion) => {
                    (PieceKind::Parameter(parameter(expansion)?), quoted)
                }
                WordPiece::CommandSubstitution(text) => (PieceKind::Capture(self.capture(text)?), quoted),
                WordPiece::ArithmeticExpression(text) => {
                    (PieceKind::Arithmetic(arithmetic(&text.value)?), quoted)
                }
                WordPiece::AnsiCQuotedText(_) | WordPiece::GettextDoubleQuotedSequence(_) => {
                    return Err(ShellError::Unsupported("`$` before a quote"));
                }
                WordPiece::BackquotedCommandSubstitution(_) => {
                    return Err(ShellError::Unsupported("a command substitution in backquotes"));
                }
                WordPiece::TildePrefix(_) => return Err(ShellError::Unsupported("tilde expansion")),
            };
            word.0.push(Piece { kind, quoted });
        }
        Ok(())
    }
}

/// Returns the parameter of an expansion.
fn parameter(expression: &ParameterExpr) -> Result<Parameter, ShellError> {
    let ParameterExpr::Parameter { parameter, indirect: false } = expression else {
        return Err(ShellError::Unsupported("this parameter expansion"));
    };
    Ok(match parameter {
        AstParameter::Named(name) => Parameter::Variable(name.clone()),
        AstParameter::Special(SpecialParameter::LastExitStatus) => Parameter::Status,
        AstParameter::Special(SpecialParameter::ProcessId) => Parameter::ShellPid,
        AstParameter::Special(SpecialParameter::LastBackgroundProcessId) => Parameter::BackgroundPid,
        _ => return Err(ShellError::Unsupported("a positional parameter or array")),
    })
}

/// Parses an arithmetic expression, in which `$name` and `${name}` mean the same as `name`.
fn arithmetic(text: &str) -> Result<ArithmeticExpr, ShellError> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        let (name, tail) = variable(&rest[at + 1..])
            .ok_or(ShellError::Unsupported("an expansion other than a variable in arithmetic"))?;
        plain.push_str(name);
        rest = tail;
    }
    plain.push_str(rest);
    if plain.contains(['`', '"', '\'']) {
        return Err(ShellError::Unsupported("a quote in arithmetic"));
    }
    brush_parser::arithmetic::parse(&plain).map_err(|_| ShellError::Syntax)
}

/// Splits the text after a `$` into the name of a variable and the text after it.
fn variable(text: &str) -> Option<(&str, &str)> {
    let (braced, body) = match text.strip_prefix('{') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let end = body.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(body.len());
    let (name, tail) = body.split_at(end);
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    Some((name, if braced { tail.strip_prefix('}')? } else { tail }))
}
