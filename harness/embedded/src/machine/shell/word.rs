//! Words of a script, in parts.

use brush_parser::ast::ArithmeticExpr;
use brush_parser::word::{
    Parameter as AstParameter, ParameterExpr, ParameterTestType, SpecialParameter, SubstringMatchKind,
    WordPiece, WordPieceWithSource, parse,
};

use super::code::{Arithmetic, Change, Name, Parameter, Piece, Word};
use super::compile::{Compiler, Unfit, options};

impl Word {
    /// A word that means itself.
    pub fn literal(text: &str) -> Self {
        Self { pieces: vec![Piece::Text { text: text.to_owned(), quoted: true }] }
    }
}

impl Compiler {
    pub fn word(&mut self, text: &str) -> Result<Word, Unfit> {
        let mut word = Word::default();
        self.pieces(&split(text)?, false, &mut word)?;
        Ok(word)
    }

    /// A text whose parts are expanded as within double quotes.
    pub fn quoted(&mut self, text: &str) -> Result<Word, Unfit> {
        let escaped = text.replace('"', "\\\"");
        self.word(&format!("\"{escaped}\""))
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool, word: &mut Word) -> Result<(), Unfit> {
        for piece in pieces {
            let piece = match &piece.piece {
                WordPiece::Text(text) => Piece::Text { text: text.clone(), quoted },
                WordPiece::SingleQuotedText(text) => Piece::Text { text: text.clone(), quoted: true },
                WordPiece::AnsiCQuotedText(text) => {
                    Piece::Text { text: super::text::unescape(text), quoted: true }
                }
                WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                    // Empty quotes make a word too.
                    word.pieces.push(Piece::Text { text: String::new(), quoted: true });
                    self.pieces(pieces, true, word)?;
                    continue;
                }
                WordPiece::EscapeSequence(text) => {
                    let text = text.get(1..).unwrap_or_default();
                    // A line's end after a backslash is nothing.
                    let text = if text == "\n" { String::new() } else { text.to_owned() };
                    Piece::Text { text, quoted: true }
                }
                WordPiece::TildePrefix(user) => {
                    let text = if user.is_empty() { "/root".to_owned() } else { format!("~{user}") };
                    Piece::Text { text, quoted: true }
                }
                WordPiece::ParameterExpansion(parameter) => {
                    Piece::Parameter { parameter: Box::new(self.parameter(parameter)?), quoted }
                }
                WordPiece::CommandSubstitution(text) => Piece::Capture { slot: self.capture(text)?, quoted },
                WordPiece::BackquotedCommandSubstitution(text) => {
                    let text = text.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                    Piece::Capture { slot: self.capture(&text)?, quoted }
                }
                WordPiece::ArithmeticExpression(text) => {
                    Piece::Arithmetic { arithmetic: self.arithmetic(&text.value)?, quoted }
                }
            };
            word.pieces.push(piece);
        }
        Ok(())
    }

    pub fn arithmetic(&mut self, text: &str) -> Result<Arithmetic, Unfit> {
        if let Some(ready) = ready(text) {
            return Ok(Arithmetic::Ready(ready));
        }
        Ok(Arithmetic::Text(self.quoted(text)?))
    }

    fn parameter(&mut self, parameter: &ParameterExpr) -> Result<Parameter, Unfit> {
        let word =
            |compiler: &mut Self, text: &Option<String>| compiler.word(text.as_deref().unwrap_or_default());
        let null = |test: &ParameterTestType| matches!(test, ParameterTestType::UnsetOrNull);
        let (parameter, indirect, change) = match parameter {
            ParameterExpr::Parameter { parameter, indirect } => (parameter, indirect, Change::None),
            ParameterExpr::UseDefaultValues { parameter, indirect, test_type, default_value } => (
                parameter,
                indirect,
                Change::Default { null: null(test_type), word: word(self, default_value)? },
            ),
            ParameterExpr::AssignDefaultValues { parameter, indirect, test_type, default_value } => (
                parameter,
                indirect,
                Change::Assign { null: null(test_type), word: word(self, default_value)? },
            ),
            ParameterExpr::IndicateErrorIfNullOrUnset { parameter, indirect, test_type, error_message } => (
                parameter,
                indirect,
                Change::Error { null: null(test_type), word: word(self, error_message)? },
            ),
            ParameterExpr::UseAlternativeValue { parameter, indirect, test_type, alternative_value } => (
                parameter,
                indirect,
                Change::Alternative { null: null(test_type), word: word(self, alternative_value)? },
            ),
            ParameterExpr::ParameterLength { parameter, indirect } => (parameter, indirect, Change::Length),
            ParameterExpr::RemoveSmallestSuffixPattern { parameter, indirect, pattern } => (
                parameter,
                indirect,
                Change::Cut { front: false, longest: false, pattern: word(self, pattern)? },
            ),
            ParameterExpr::RemoveLargestSuffixPattern { parameter, indirect, pattern } => (
                parameter,
                indirect,
                Change::Cut { front: false, longest: true, pattern: word(self, pattern)? },
            ),
            ParameterExpr::RemoveSmallestPrefixPattern { parameter, indirect, pattern } => (
                parameter,
                indirect,
                Change::Cut { front: true, longest: false, pattern: word(self, pattern)? },
            ),
            ParameterExpr::RemoveLargestPrefixPattern { parameter, indirect, pattern } => (
                parameter,
                indirect,
                Change::Cut { front: true, longest: true, pattern: word(self, pattern)? },
            ),
            ParameterExpr::Substring { parameter, indirect, offset, length } => {
                let from = self.arithmetic(&offset.value)?;
                let length = length.as_ref().map(|length| self.arithmetic(&length.value)).transpose()?;
                (parameter, indirect, Change::Part { from, length })
            }
            ParameterExpr::ReplaceSubstring { parameter, indirect, pattern, replacement, match_kind } => {
                let all = match match_kind {
                    SubstringMatchKind::FirstOccurrence => false,
                    SubstringMatchKind::Anywhere => true,
                    SubstringMatchKind::Prefix | SubstringMatchKind::Suffix => {
                        return Err(Unfit::Unsupported);
                    }
                };
                let (pattern, by) = (self.word(pattern)?, word(self, replacement)?);
                (parameter, indirect, Change::Replace { pattern, by, all })
            }
            _ => return Err(Unfit::Unsupported),
        };
        if *indirect {
            return Err(Unfit::Unsupported);
        }
        let name = match parameter {
            AstParameter::Named(name) => Name::Variable(name.clone()),
            AstParameter::Positional(at) => Name::Position(*at as usize),
            AstParameter::Special(special) => match special {
                SpecialParameter::AllPositionalParameters { concatenate } => {
                    Name::All { joined: *concatenate }
                }
                SpecialParameter::PositionalParameterCount => Name::Count,
                SpecialParameter::LastExitStatus => Name::Status,
                SpecialParameter::CurrentOptionFlags => Name::Flags,
                SpecialParameter::ProcessId => Name::Process,
                SpecialParameter::LastBackgroundProcessId => Name::Background,
                SpecialParameter::ShellName => Name::Position(0),
            },
            AstParameter::NamedWithIndex { .. } | AstParameter::NamedWithAllIndices { .. } => {
                return Err(Unfit::Unsupported);
            }
        };
        Ok(Parameter { name, change })
    }
}

fn split(text: &str) -> Result<Vec<WordPieceWithSource>, Unfit> {
    parse(text, &options()).map_err(|error| Unfit::Syntax(error.to_string()))
}

/// An expression that needs no expansion: `$i` and `${i}` mean in it what `i` does.
fn ready(text: &str) -> Option<ArithmeticExpr> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (braced, body) = match after.strip_prefix('{') {
            Some(body) => (true, body),
            None => (false, after),
        };
        let end = body.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(body.len());
        let name = &body[..end];
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let tail = if braced { body[end..].strip_prefix('}')? } else { &body[end..] };
        plain.push_str(name);
        rest = tail;
    }
    plain.push_str(rest);
    if plain.contains(['`', '"', '\'']) {
        return None;
    }
    brush_parser::arithmetic::parse(&plain).ok()
}
