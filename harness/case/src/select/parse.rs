//! The parser of label filters.

use std::collections::BTreeSet;

use regex::Regex;

use crate::did_you_mean;
use crate::values::regex_problem;

/// A parsed filter. Labels, keys and values are in lower case.
#[derive(Clone, Debug)]
pub(crate) enum LabelExpression {
    /// The empty filter, which selects every case.
    Everything,
    Label(String),
    Regex(Regex),
    Set(SetOperation, String, BTreeSet<String>),
    Not(Box<LabelExpression>),
    And(Vec<LabelExpression>),
    Or(Vec<LabelExpression>),
}

/// An operation on the values of a key, which are those of labels of the form `key:value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOperation {
    ContainsAny,
    ContainsAll,
    ConsistsOf,
    IsSubsetOf,
    IsEmpty,
}

impl SetOperation {
    const ALL: [(&'static str, Self); 5] = [
        ("containsAny", Self::ContainsAny),
        ("containsAll", Self::ContainsAll),
        ("consistsOf", Self::ConsistsOf),
        ("isSubsetOf", Self::IsSubsetOf),
        ("isEmpty", Self::IsEmpty),
    ];

    pub(crate) fn holds(self, actual: &BTreeSet<String>, stated: &BTreeSet<String>) -> bool {
        match self {
            Self::ContainsAny => !actual.is_disjoint(stated),
            Self::ContainsAll => actual.is_superset(stated),
            Self::ConsistsOf => actual == stated,
            Self::IsSubsetOf => actual.is_subset(stated),
            Self::IsEmpty => actual.is_empty(),
        }
    }
}

/// Characters that end a label.
const SPECIAL: &str = "&|!,()/";

/// Maximum depth of brackets, which protects the stack of the parser.
const MAX_DEPTH: usize = 64;

/// A label filter that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n  {filter}\n  {}^", " ".repeat(*.at))]
pub struct LabelFilterError {
    /// The filter.
    pub filter: String,
    /// Position of the mistake, in characters from the start.
    pub at: usize,
    /// Description of the mistake.
    pub message: String,
}

pub(crate) fn parse(filter: &str) -> Result<LabelExpression, LabelFilterError> {
    let mut parser = Parser { text: filter.chars().collect(), at: 0, depth: 0 };
    let parsed = parser.filter();
    parsed.map_err(|(at, message)| {
        // A single line, so that the caret is below the position.
        let filter = filter.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        LabelFilterError { filter, at, message }
    })
}

type Parsed<T> = Result<T, (usize, String)>;

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn filter(&mut self) -> Parsed<LabelExpression> {
        self.skip_spaces();
        if self.peek().is_none() {
            return Ok(LabelExpression::Everything);
        }
        let expression = self.any_of()?;
        match self.peek() {
            None => Ok(expression),
            Some(')') => self.error("unmatched `)`"),
            Some(_) => self.error("missing operator: put && or || between two labels"),
        }
    }

    /// Parses `a || b, c`.
    fn any_of(&mut self) -> Parsed<LabelExpression> {
        let mut any = vec![self.all_of()?];
        while self.skip(",") || self.operator('|', "||")? {
            any.push(self.all_of()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { LabelExpression::Or(any) })
    }

    /// Parses `a && b`.
    fn all_of(&mut self) -> Parsed<LabelExpression> {
        let mut all = vec![self.one()?];
        while self.operator('&', "&&")? {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { LabelExpression::And(all) })
    }

    /// Parses `a`, `!a`, `(…)`, `/regex/` or `key: operation {values}`.
    fn one(&mut self) -> Parsed<LabelExpression> {
        let mut negated = false;
        while self.skip("!") {
            negated = !negated;
        }
        let expression = match self.peek() {
            Some('(') => self.group()?,
            Some('/') => self.regex()?,
            Some(c) if !SPECIAL.contains(c) => self.label_or_set()?,
            Some(_) => return self.error("expected a label"),
            None => return self.error("expected a label at the end of the filter"),
        };
        Ok(if negated { LabelExpression::Not(Box::new(expression)) } else { expression })
    }

    fn group(&mut self) -> Parsed<LabelExpression> {
        let open = self.at;
        if self.depth == MAX_DEPTH {
            return self.error("the brackets are nested too deeply");
        }
        self.depth += 1;
        self.skip("(");
        if self.peek() == Some(')') {
            return self.error("empty brackets");
        }
        let inner = self.any_of()?;
        self.depth -= 1;
        match self.peek() {
            Some(')') => self.skip(")"),
            None => return Err((open, "unclosed `(`".to_owned())),
            Some(_) => return self.error("missing operator: put && or || between two labels"),
        };
        Ok(inner)
    }

    fn regex(&mut self) -> Parsed<LabelExpression> {
        let open = self.at;
        self.at += 1;
        let text = self.take_until("/");
        if self.peek().is_none() {
            return Err((open, "unclosed `/`".to_owned()));
        }
        self.skip("/");
        let invalid = |error| (open, format!("invalid regular expression: {}", regex_problem(&error)));
        Regex::new(&text).map(LabelExpression::Regex).map_err(invalid)
    }

    fn label_or_set(&mut self) -> Parsed<LabelExpression> {
        let start = self.at;
        let mut label = self.take_until(&format!("{SPECIAL}:"));
        if self.peek() == Some(':') {
            match self.text.get(self.at + 1) {
                Some(' ') => return self.set(start, label.trim()),
                Some(c) if !SPECIAL.contains(*c) => label.push_str(&self.take_until(SPECIAL)),
                _ => return self.error("expected a value after the `:`, or a space and a set operation"),
            }
        }
        let lower = label.trim().to_lowercase();
        let without_key =
            SetOperation::ALL.iter().find(|(name, _)| lower.contains(&format!(" {}", name.to_lowercase())));
        if let Some((name, _)) = without_key {
            return Err((start, format!("{name} needs a key: write `key: {name} …`")));
        }
        self.skip_spaces();
        Ok(LabelExpression::Label(lower))
    }

    fn set(&mut self, start: usize, key: &str) -> Parsed<LabelExpression> {
        if key.is_empty() {
            return Err((start, "expected a key before the `:`".to_owned()));
        }
        self.at += 1;
        self.skip_spaces();
        let at = self.at;
        let word = self.take_until(" )");
        let found = SetOperation::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
        let Some((name, operation)) = found else {
            let names = SetOperation::ALL.map(|(name, _)| name);
            let hint = did_you_mean(&word, names).unwrap_or_else(|| format!("valid: {}", names.join(", ")));
            return Err((at, format!("unknown set operation `{word}`: {hint}")));
        };
        self.skip_spaces();
        let values = self.values(name)?;
        match (operation, values.is_empty()) {
            (SetOperation::IsEmpty, false) => Err((at, format!("{name} takes no values"))),
            (SetOperation::IsEmpty, true) | (_, false) => {
                Ok(LabelExpression::Set(*operation, key.to_lowercase(), values))
            }
            (_, true) => self.error(&format!("{name} needs values, such as {{a, b}}")),
        }
    }

    /// Parses `{a, b}`, or one value without braces.
    fn values(&mut self, operation: &str) -> Parsed<BTreeSet<String>> {
        let open = self.at;
        let text = match self.peek() {
            Some('{') => {
                self.at += 1;
                let text = self.take_until("}");
                if self.peek().is_none() {
                    return Err((open, "unclosed `{`".to_owned()));
                }
                self.skip("}");
                text
            }
            Some('/') => return self.error(&format!("{operation} takes values, not a regular expression")),
            _ => {
                let text = self.take_until(SPECIAL);
                if text.trim().is_empty() {
                    return Ok(BTreeSet::new());
                }
                text
            }
        };
        let value = |text: &str| match text.trim().to_lowercase() {
            value if value.is_empty() => Err((open, "empty value".to_owned())),
            value if value.contains(|c| SPECIAL.contains(c)) => {
                Err((open, format!("invalid value `{value}`")))
            }
            value => Ok(value),
        };
        text.split(',').map(value).collect()
    }

    /// Skips an operator of two equal characters, if it is next.
    fn operator(&mut self, half: char, whole: &str) -> Parsed<bool> {
        if self.peek() == Some(half) && self.text.get(self.at + 1) != Some(&half) {
            return self.error(&format!("write {whole}, not {half}"));
        }
        Ok(self.skip(whole))
    }

    /// Skips the token and the spaces after it, if it is next.
    fn skip(&mut self, token: &str) -> bool {
        let len = token.chars().count();
        let next =
            self.text.get(self.at..self.at + len).is_some_and(|next| next.iter().copied().eq(token.chars()));
        if next {
            self.at += len;
            self.skip_spaces();
        }
        next
    }

    fn take_until(&mut self, ends: &str) -> String {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|c| ends.contains(*c)).unwrap_or(rest.len());
        self.at += len;
        rest[..len].iter().collect()
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(' ') {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn error<T>(&self, message: &str) -> Parsed<T> {
        Err((self.at, message.to_owned()))
    }
}
