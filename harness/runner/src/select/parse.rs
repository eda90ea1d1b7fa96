//! Reading a label filter.

use std::collections::BTreeSet;

use regex::Regex;

use super::label_filter::{Expression, SetOperation};
use crate::case::did_you_mean;

/// What ends a label.
const SPECIAL: &str = "&|!,()/";

/// More brackets within brackets than anyone writes; a limit keeps the parser from running out of stack.
const DEEPEST: usize = 64;

/// A label filter that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  {filter}\n  {}^", " ".repeat(*.at))]
pub struct LabelFilterError {
    /// The filter.
    pub filter: String,
    /// Where it is wrong: so many characters from its begin.
    pub at: usize,
    /// What is wrong with it.
    pub what: String,
}

pub(super) fn parse(filter: &str) -> Result<Expression, LabelFilterError> {
    let mut parser = Parser { text: filter.chars().collect(), at: 0, depth: 0 };
    let parsed = parser.whole();
    parsed.map_err(|(at, what)| {
        // One line, whatever was in it, so that the caret is below its character.
        let filter = filter.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        LabelFilterError { filter, at, what }
    })
}

type Parsed<T> = Result<T, (usize, String)>;

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn whole(&mut self) -> Parsed<Expression> {
        self.skip_spaces();
        if self.peek().is_none() {
            return Ok(Expression::Everything);
        }
        let expression = self.any_of()?;
        match self.peek() {
            None => Ok(expression),
            Some(')') => self.error("this `)` closes nothing"),
            Some(_) => self.error("two labels side by side: put && or || between them"),
        }
    }

    /// `a || b, c`
    fn any_of(&mut self) -> Parsed<Expression> {
        let mut any = vec![self.all_of()?];
        while self.take(",") || self.operator('|', "||")? {
            any.push(self.all_of()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Expression::Or(any) })
    }

    /// `a && b`
    fn all_of(&mut self) -> Parsed<Expression> {
        let mut all = vec![self.one()?];
        while self.operator('&', "&&")? {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expression::And(all) })
    }

    /// `a`, `!a`, `(…)`, `/regex/`, `key: operation {values}`
    fn one(&mut self) -> Parsed<Expression> {
        let mut negated = false;
        while self.take("!") {
            negated = !negated;
        }
        let expression = match self.peek() {
            Some('(') => self.group()?,
            Some('/') => self.regex()?,
            Some(c) if !SPECIAL.contains(c) => self.label_or_set()?,
            Some(_) => return self.error("a label belongs here"),
            None => return self.error("the filter ends where a label belongs"),
        };
        Ok(if negated { Expression::Not(Box::new(expression)) } else { expression })
    }

    fn group(&mut self) -> Parsed<Expression> {
        let open = self.at;
        if self.depth == DEEPEST {
            return self.error("the brackets are nested too deep");
        }
        self.depth += 1;
        self.take("(");
        if self.peek() == Some(')') {
            return self.error("nothing is between these brackets");
        }
        let inner = self.any_of()?;
        self.depth -= 1;
        match self.peek() {
            Some(')') => self.take(")"),
            None => return Err((open, "this `(` is not closed".to_owned())),
            Some(_) => return self.error("two labels side by side: put && or || between them"),
        };
        Ok(inner)
    }

    fn regex(&mut self) -> Parsed<Expression> {
        let open = self.at;
        self.at += 1;
        let text = self.until("/");
        if self.peek().is_none() {
            return Err((open, "this `/` is not closed".to_owned()));
        }
        self.take("/");
        Regex::new(&text).map(Expression::Regex).map_err(|why| {
            let why = why.to_string();
            (
                open,
                format!("this is no regular expression: {}", why.lines().last().unwrap_or_default().trim()),
            )
        })
    }

    fn label_or_set(&mut self) -> Parsed<Expression> {
        let start = self.at;
        let mut label = self.until(&format!("{SPECIAL}:"));
        if self.peek() == Some(':') {
            match self.text.get(self.at + 1) {
                Some(' ') => return self.set(start, label.trim()),
                Some(c) if !SPECIAL.contains(*c) => label.push_str(&self.until(SPECIAL)),
                _ => return self.error("a value belongs after the `:`, or a space and a set operation"),
            }
        }
        let lower = label.trim().to_lowercase();
        let forgotten =
            SetOperation::ALL.iter().find(|(name, _)| lower.contains(&format!(" {}", name.to_lowercase())));
        if let Some((name, _)) = forgotten {
            return Err((start, format!("{name} asks about a key: write `key: {name} …`")));
        }
        self.skip_spaces();
        Ok(Expression::Label(lower))
    }

    fn set(&mut self, start: usize, key: &str) -> Parsed<Expression> {
        if key.is_empty() {
            return Err((start, "a key belongs before the `:`".to_owned()));
        }
        self.at += 1;
        self.skip_spaces();
        let at = self.at;
        let word = self.until(" )");
        let found = SetOperation::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
        let Some((name, operation)) = found else {
            let names = SetOperation::ALL.map(|(name, _)| name);
            let hint = did_you_mean(&word, names).unwrap_or_else(|| format!("they are {}", names.join(", ")));
            return Err((at, format!("`{word}` is no set operation: {hint}")));
        };
        self.skip_spaces();
        let values = self.values(name)?;
        match (operation, values.is_empty()) {
            (SetOperation::IsEmpty, false) => Err((at, format!("{name} takes no values"))),
            (SetOperation::IsEmpty, true) | (_, false) => {
                Ok(Expression::Set(*operation, key.to_lowercase(), values))
            }
            (_, true) => self.error(&format!("{name} needs values, such as {{a, b}}")),
        }
    }

    /// `{a, b}`, or one value as it is.
    fn values(&mut self, operation: &str) -> Parsed<BTreeSet<String>> {
        let open = self.at;
        let text = match self.peek() {
            Some('{') => {
                self.at += 1;
                let text = self.until("}");
                if self.peek().is_none() {
                    return Err((open, "this `{` is not closed".to_owned()));
                }
                self.take("}");
                text
            }
            Some('/') => return self.error(&format!("{operation} takes values and no regular expressions")),
            _ => {
                let text = self.until(SPECIAL);
                if text.trim().is_empty() {
                    return Ok(BTreeSet::new());
                }
                text
            }
        };
        let value = |text: &str| match text.trim().to_lowercase() {
            value if value.is_empty() => Err((open, "a value is empty".to_owned())),
            value if value.contains(|c| SPECIAL.contains(c)) => {
                Err((open, format!("`{value}` cannot be a value")))
            }
            value => Ok(value),
        };
        text.split(',').map(value).collect()
    }

    /// Takes an operator of two equal characters.
    fn operator(&mut self, half: char, whole: &str) -> Parsed<bool> {
        if self.peek() == Some(half) && self.text.get(self.at + 1) != Some(&half) {
            return self.error(&format!("write {whole}, not {half}"));
        }
        Ok(self.take(whole))
    }

    /// Takes this and the spaces behind it, if it is next.
    fn take(&mut self, token: &str) -> bool {
        let len = token.chars().count();
        let next =
            self.text.get(self.at..self.at + len).is_some_and(|next| next.iter().copied().eq(token.chars()));
        if next {
            self.at += len;
            self.skip_spaces();
        }
        next
    }

    fn until(&mut self, ends: &str) -> String {
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

    fn error<T>(&self, what: &str) -> Parsed<T> {
        Err((self.at, what.to_owned()))
    }
}
