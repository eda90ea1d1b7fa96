//! Words and what they become.

use std::sync::Arc;

use brush_parser::ast::{
    ArithmeticExpr, ArithmeticTarget, BinaryOperator, UnaryAssignmentOperator, UnaryOperator,
};

use super::super::kernel::Kernel;
use super::super::process::Pid;
use super::Shell;
use super::code::{Arithmetic, Change, Name, Parameter, Piece, Word};
use super::text::Pattern;

/// Values of variables are kept to this size: a script that makes larger ones does not go on.
const LONGEST: usize = 1 << 20;

/// Why a word could not be expanded: the shell says so and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad(pub String);

/// Fields while they are made.
#[derive(Default)]
struct Fields {
    done: Vec<(String, Option<String>)>,
    text: String,
    /// The same as a pattern, once there is something in it that is special.
    pattern: Option<String>,
    /// Whether there is a field at all, empty or not.
    begun: bool,
}

impl Fields {
    fn quoted(&mut self, text: &str) {
        self.begun = true;
        if let Some(pattern) = &mut self.pattern {
            pattern.push_str(&escape(text));
        }
        self.text.push_str(text);
    }

    fn plain(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begun = true;
        if self.pattern.is_none() && is_special(text) {
            self.pattern = Some(escape(&self.text));
        }
        if let Some(pattern) = &mut self.pattern {
            pattern.push_str(text);
        }
        self.text.push_str(text);
    }

    fn split(&mut self, text: &str, separators: &str) {
        if separators.is_empty() {
            return self.plain(text);
        }
        let mut parts = text.split(|char| separators.contains(char)).peekable();
        while let Some(part) = parts.next() {
            self.plain(part);
            if parts.peek().is_some() {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        let pattern = self.pattern.take();
        if std::mem::take(&mut self.begun) {
            self.done.push((text, pattern));
        }
    }
}

/// Whether it may match other texts than itself.
fn is_special(text: &str) -> bool {
    text.contains(['*', '?']) || text.split_once('[').is_some_and(|(_, rest)| rest.contains(']'))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

impl Shell {
    /// The fields of words.
    pub(super) fn fields(
        &mut self,
        words: &[Word],
        me: Pid,
        kernel: &mut Kernel,
    ) -> Result<Vec<String>, Bad> {
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            // Most words are plain text.
            if let [Piece::Text { text, quoted }] = word.pieces.as_slice()
                && (*quoted || !is_special(text))
            {
                out.push(text.clone());
                continue;
            }
            let mut fields = Fields::default();
            for piece in &word.pieces {
                self.piece(piece, &mut fields)?;
            }
            fields.end();
            for (text, pattern) in fields.done {
                match pattern {
                    Some(pattern) => {
                        let found = glob(&pattern, me, kernel);
                        if found.is_empty() {
                            out.push(text);
                        } else {
                            out.extend(found);
                        }
                    }
                    None => out.push(text),
                }
            }
        }
        Ok(out)
    }

    /// A word as one text.
    pub(super) fn single(&mut self, word: &Word) -> Result<String, Bad> {
        Ok(self.both(word)?.0)
    }

    /// A word as a pattern.
    pub(super) fn pattern(&mut self, word: &Word) -> Result<Pattern, Bad> {
        let (text, pattern) = self.both(word)?;
        Ok(Pattern::new(&pattern.unwrap_or_else(|| escape(&text)), false))
    }

    fn both(&mut self, word: &Word) -> Result<(String, Option<String>), Bad> {
        let mut fields = Fields::default();
        for piece in &word.pieces {
            match piece {
                Piece::Text { text, quoted: false } => fields.plain(text),
                Piece::Text { text, quoted: true } => fields.quoted(text),
                Piece::Parameter { parameter, quoted } => {
                    let text = self.parameter(parameter)?.unwrap_or_default();
                    if *quoted { fields.quoted(&text) } else { fields.plain(&text) }
                }
                Piece::Arithmetic { arithmetic, .. } => {
                    let number = self.calculate(arithmetic)?;
                    fields.plain(&number.to_string());
                }
                Piece::Capture { slot, quoted } => {
                    let text = self.slots.get(*slot).cloned().unwrap_or_default();
                    if *quoted { fields.quoted(&text) } else { fields.plain(&text) }
                }
            }
        }
        Ok((fields.text, fields.pattern))
    }

    fn piece(&mut self, piece: &Piece, fields: &mut Fields) -> Result<(), Bad> {
        match piece {
            Piece::Text { text, quoted: true } => fields.quoted(text),
            Piece::Text { text, quoted: false } => fields.plain(text),
            Piece::Parameter { parameter, quoted } => {
                if let (Name::All { joined }, Change::None) = (&parameter.name, &parameter.change)
                    && !(*quoted && *joined)
                {
                    let all = self.arguments.clone();
                    for (at, argument) in all.iter().enumerate() {
                        if at > 0 {
                            fields.end();
                        }
                        if *quoted { fields.quoted(argument) } else { self.add(argument, fields) }
                    }
                    return Ok(());
                }
                match self.parameter(parameter)? {
                    Some(text) if *quoted => fields.quoted(&text),
                    Some(text) => self.add(&text, fields),
                    None if *quoted => fields.quoted(""),
                    None => {}
                }
            }
            Piece::Arithmetic { arithmetic, quoted } => {
                let text = self.calculate(arithmetic)?.to_string();
                if *quoted { fields.quoted(&text) } else { self.add(&text, fields) }
            }
            Piece::Capture { slot, quoted } => {
                let text = self.slots.get(*slot).cloned().unwrap_or_default();
                if *quoted { fields.quoted(&text) } else { self.add(&text, fields) }
            }
        }
        Ok(())
    }

    fn add(&self, text: &str, fields: &mut Fields) {
        match self.variables.get("IFS") {
            Some(separators) => fields.split(text, separators),
            None => fields.split(text, " \t\n"),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: String) -> Result<(), Bad> {
        if value.len() > LONGEST {
            return Err(Bad(format!("{name}: longer than this model keeps")));
        }
        Arc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        Ok(())
    }

    fn value(&self, name: &Name) -> Option<String> {
        match name {
            Name::Variable(name) => self.variables.get(name).cloned(),
            Name::Position(0) => Some(self.zero.clone()),
            Name::Position(at) => self.arguments.get(at - 1).cloned(),
            Name::All { .. } => Some(self.arguments.join(" ")),
            Name::Count => Some(self.arguments.len().to_string()),
            Name::Status => Some(self.status.to_string()),
            Name::Process => Some(self.process.to_string()),
            Name::Background => self.background.map(|inner| inner.to_string()),
            Name::Flags => Some(if self.strict { "e".to_owned() } else { String::new() }),
        }
    }

    fn parameter(&mut self, parameter: &Parameter) -> Result<Option<String>, Bad> {
        let value = self.value(&parameter.name);
        let lacks = |null: bool| match &value {
            None => true,
            Some(text) => null && text.is_empty(),
        };
        Ok(match &parameter.change {
            Change::None => value,
            Change::Default { null, word } => {
                if lacks(*null) {
                    Some(self.single(word)?)
                } else {
                    value
                }
            }
            Change::Assign { null, word } => {
                if !lacks(*null) {
                    return Ok(value);
                }
                let text = self.single(word)?;
                if let Name::Variable(name) = &parameter.name {
                    self.set(name, text.clone())?;
                }
                Some(text)
            }
            Change::Error { null, word } => {
                if !lacks(*null) {
                    return Ok(value);
                }
                let what = self.single(word)?;
                let name = match &parameter.name {
                    Name::Variable(name) => name.clone(),
                    Name::Position(at) => at.to_string(),
                    _ => String::new(),
                };
                let what = if what.is_empty() { "parameter not set or null".to_owned() } else { what };
                return Err(Bad(format!("{name}: {what}")));
            }
            Change::Alternative { null, word } => {
                if lacks(*null) {
                    None
                } else {
                    Some(self.single(word)?)
                }
            }
            Change::Length => Some(match &parameter.name {
                Name::All { .. } => self.arguments.len().to_string(),
                _ => value.unwrap_or_default().chars().count().to_string(),
            }),
            Change::Cut { front, longest, pattern } => {
                let pattern = self.pattern(pattern)?;
                value.map(|value| cut(&value, *front, *longest, &pattern))
            }
            Change::Part { from, length } => {
                let chars: Vec<char> = value.unwrap_or_default().chars().collect();
                let len = chars.len() as i64;
                let from = self.calculate(from)?;
                let from = if from < 0 { len + from } else { from }.clamp(0, len);
                let to = match length {
                    None => len,
                    Some(length) => {
                        let length = self.calculate(length)?;
                        if length < 0 { len + length } else { from + length }
                    }
                };
                Some(chars[from as usize..to.clamp(from, len) as usize].iter().collect())
            }
            Change::Replace { pattern, by, all } => {
                let (from, by) = (self.single(pattern)?, self.single(by)?);
                let value = value.unwrap_or_default();
                if from.is_empty() {
                    return Ok(Some(value));
                }
                Some(if *all { value.replace(&from, &by) } else { value.replacen(&from, &by, 1) })
            }
        })
    }

    /// The value of an arithmetic expression.
    pub(super) fn calculate(&mut self, arithmetic: &Arithmetic) -> Result<i64, Bad> {
        match arithmetic {
            Arithmetic::Ready(expression) => self.evaluate(expression, 0),
            Arithmetic::Text(word) => {
                let text = self.single(word)?;
                let wrong = |_| Bad("arithmetic syntax error".to_owned());
                let expression = brush_parser::arithmetic::parse(text.trim()).map_err(wrong)?;
                self.evaluate(&expression, 0)
            }
        }
    }

    fn variable(&mut self, target: &ArithmeticTarget, depth: u32) -> Result<i64, Bad> {
        let ArithmeticTarget::Variable(name) = target else {
            return Err(Bad("arithmetic syntax error".to_owned()));
        };
        let text = self.variables.get(name).map_or("", |text| text.trim());
        if text.is_empty() {
            return Ok(0);
        }
        if let Ok(number) = text.parse() {
            return Ok(number);
        }
        // A variable may hold an expression, and that one other variables.
        if depth > 16 {
            return Err(Bad("expression recursion loop detected".to_owned()));
        }
        let wrong = |_| Bad("arithmetic syntax error".to_owned());
        let expression = brush_parser::arithmetic::parse(text).map_err(wrong)?;
        self.evaluate(&expression, depth + 1)
    }

    fn assign(&mut self, target: &ArithmeticTarget, value: i64) -> Result<i64, Bad> {
        let ArithmeticTarget::Variable(name) = target else {
            return Err(Bad("arithmetic syntax error".to_owned()));
        };
        self.set(name, value.to_string())?;
        Ok(value)
    }

    fn evaluate(&mut self, expression: &ArithmeticExpr, depth: u32) -> Result<i64, Bad> {
        Ok(match expression {
            ArithmeticExpr::Literal(number) => *number,
            ArithmeticExpr::Reference(target) => self.variable(target, depth)?,
            ArithmeticExpr::UnaryOp(operator, operand) => {
                let operand = self.evaluate(operand, depth)?;
                match operator {
                    UnaryOperator::UnaryPlus => operand,
                    UnaryOperator::UnaryMinus => operand.wrapping_neg(),
                    UnaryOperator::BitwiseNot => !operand,
                    UnaryOperator::LogicalNot => i64::from(operand == 0),
                }
            }
            ArithmeticExpr::BinaryOp(operator, left, right) => {
                let left = self.evaluate(left, depth)?;
                match operator {
                    BinaryOperator::LogicalAnd if left == 0 => 0,
                    BinaryOperator::LogicalOr if left != 0 => 1,
                    _ => {
                        let right = self.evaluate(right, depth)?;
                        binary(operator, left, right)?
                    }
                }
            }
            ArithmeticExpr::Conditional(condition, then, otherwise) => {
                let condition = self.evaluate(condition, depth)?;
                self.evaluate(if condition != 0 { then } else { otherwise }, depth)?
            }
            ArithmeticExpr::Assignment(target, value) => {
                let value = self.evaluate(value, depth)?;
                self.assign(target, value)?
            }
            ArithmeticExpr::BinaryAssignment(operator, target, value) => {
                let value = self.evaluate(value, depth)?;
                let before = self.variable(target, depth)?;
                self.assign(target, binary(operator, before, value)?)?
            }
            ArithmeticExpr::UnaryAssignment(operator, target) => {
                let before = self.variable(target, depth)?;
                let (after, result) = match operator {
                    UnaryAssignmentOperator::PrefixIncrement => {
                        (before.wrapping_add(1), before.wrapping_add(1))
                    }
                    UnaryAssignmentOperator::PrefixDecrement => {
                        (before.wrapping_sub(1), before.wrapping_sub(1))
                    }
                    UnaryAssignmentOperator::PostfixIncrement => (before.wrapping_add(1), before),
                    UnaryAssignmentOperator::PostfixDecrement => (before.wrapping_sub(1), before),
                };
                self.assign(target, after)?;
                result
            }
        })
    }
}

fn binary(operator: &BinaryOperator, left: i64, right: i64) -> Result<i64, Bad> {
    let shift = u32::try_from(right & 63).unwrap_or_default();
    Ok(match operator {
        BinaryOperator::Power => left.wrapping_pow(u32::try_from(right).unwrap_or_default()),
        BinaryOperator::Multiply => left.wrapping_mul(right),
        BinaryOperator::Divide | BinaryOperator::Modulo if right == 0 => {
            return Err(Bad("divide by zero".to_owned()));
        }
        BinaryOperator::Divide => left.wrapping_div(right),
        BinaryOperator::Modulo => left.wrapping_rem(right),
        BinaryOperator::Comma => right,
        BinaryOperator::Add => left.wrapping_add(right),
        BinaryOperator::Subtract => left.wrapping_sub(right),
        BinaryOperator::ShiftLeft => left.wrapping_shl(shift),
        BinaryOperator::ShiftRight => left.wrapping_shr(shift),
        BinaryOperator::LessThan => i64::from(left < right),
        BinaryOperator::LessThanOrEqualTo => i64::from(left <= right),
        BinaryOperator::GreaterThan => i64::from(left > right),
        BinaryOperator::GreaterThanOrEqualTo => i64::from(left >= right),
        BinaryOperator::Equals => i64::from(left == right),
        BinaryOperator::NotEquals => i64::from(left != right),
        BinaryOperator::BitwiseAnd => left & right,
        BinaryOperator::BitwiseXor => left ^ right,
        BinaryOperator::BitwiseOr => left | right,
        BinaryOperator::LogicalAnd => i64::from(left != 0 && right != 0),
        BinaryOperator::LogicalOr => i64::from(left != 0 || right != 0),
    })
}

/// Takes the part that matches away from the front or the end.
fn cut(value: &str, front: bool, longest: bool, pattern: &Pattern) -> String {
    let mut places: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    // From the shortest part to the longest, or the other way round.
    if front == longest {
        places.reverse();
    }
    for at in places {
        let (head, tail) = value.split_at(at);
        if front && pattern.matches(head) {
            return tail.to_owned();
        }
        if !front && pattern.matches(tail) {
            return head.to_owned();
        }
    }
    value.to_owned()
}

/// The paths that a pattern matches.
fn glob(pattern: &str, me: Pid, kernel: &mut Kernel) -> Vec<String> {
    let special = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let directory = pattern[..special].rsplit_once('/').map_or("", |(directory, _)| directory);
    let directory = if directory.is_empty() && pattern.starts_with('/') { "/" } else { directory };
    let plain = directory.replace('\\', "");
    let expression = Pattern::new(pattern, true);
    kernel.matching(me, &plain, |path| {
        let hidden = path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
        !hidden && expression.matches(path)
    })
}
