//! From text to operations. The grammar is the library's; what this model has no operation for is told as unsupported.

use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, Command as AstCommand, CommandPrefixOrSuffixItem,
    CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect,
    Pipeline, SeparatorOperator, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions, SourceInfo};

use super::super::files::Mode;
use super::code::{Assignment, Code, Command, Op, Redirect, Test, To, Word};

/// Something that is no script, or not one that this model runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The shell would complain.
    Syntax(String),
    /// The shell would run it.
    Unsupported,
}

pub(super) fn options() -> ParserOptions {
    // busybox's shell understands much of bash's language.
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

/// Compiles a script. `end` is what it ends with.
pub(super) fn compile(text: &str, end: Op) -> Result<Code, Unfit> {
    let mut compiler = Compiler { code: Code::default(), check: text.contains("set -"), slots: 0 };
    compiler.script(text)?;
    compiler.code.ops.push(end);
    compiler.code.slots = compiler.slots;
    Ok(compiler.code)
}

pub(super) struct Compiler {
    code: Code,
    /// Whether `set -e` may be in force.
    check: bool,
    pub slots: usize,
}

impl Compiler {
    fn script(&mut self, text: &str) -> Result<(), Unfit> {
        let options = options();
        let mut parser = Parser::new(text.as_bytes(), &options, &SourceInfo::default());
        let program = parser.parse_program().map_err(|error| Unfit::Syntax(error.to_string()))?;
        for list in &program.complete_commands {
            self.list(list, self.check)?;
        }
        Ok(())
    }

    fn here(&self) -> usize {
        self.code.ops.len()
    }

    /// Adds an operation whose target is filled in later.
    fn hole(&mut self, op: Op) -> usize {
        self.code.ops.push(op);
        self.here() - 1
    }

    fn fill(&mut self, hole: usize, to: usize) {
        match &mut self.code.ops[hole] {
            Op::Jump(target) | Op::Unless(target) | Op::If(target) => *target = to,
            Op::Background { end }
            | Op::Subshell { end }
            | Op::Capture { end, .. }
            | Op::Pipeline { end, .. }
            | Op::Loop { end, .. }
            | Op::For { end, .. }
            | Op::Define { end, .. } => *end = to,
            Op::Next { otherwise, .. } => *otherwise = to,
            _ => {}
        }
    }

    /// A part that runs in a shell of its own.
    fn part(&mut self, hole: usize, body: impl FnOnce(&mut Self) -> Result<(), Unfit>) -> Result<(), Unfit> {
        body(self)?;
        self.code.ops.push(Op::Done);
        let end = self.here();
        self.fill(hole, end);
        Ok(())
    }

    fn list(&mut self, list: &CompoundList, check: bool) -> Result<(), Unfit> {
        for item in &list.0 {
            let pipelines = &item.0;
            let run = |compiler: &mut Self| -> Result<(), Unfit> {
                let last = pipelines.additional.len();
                compiler.pipeline(&pipelines.first, check && last == 0)?;
                for (at, next) in pipelines.additional.iter().enumerate() {
                    let (op, pipeline) = match next {
                        AndOr::And(pipeline) => (Op::Unless(0), pipeline),
                        AndOr::Or(pipeline) => (Op::If(0), pipeline),
                    };
                    let skip = compiler.hole(op);
                    compiler.pipeline(pipeline, check && at + 1 == last)?;
                    // A part that is not run leaves the status to the next one.
                    let here = compiler.here();
                    compiler.fill(skip, here);
                }
                Ok(())
            };
            match item.1 {
                SeparatorOperator::Async => {
                    let hole = self.hole(Op::Background { end: 0 });
                    self.part(hole, run)?;
                }
                SeparatorOperator::Sequence => run(self)?,
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, check: bool) -> Result<(), Unfit> {
        match pipeline.seq.as_slice() {
            [only] => self.command(only, check && !pipeline.bang)?,
            all => {
                let hole = self.hole(Op::Status(0));
                let mut parts = Vec::new();
                for command in all {
                    parts.push(self.here());
                    self.command(command, check)?;
                    self.code.ops.push(Op::Done);
                }
                let end = self.here();
                self.code.ops[hole] = Op::Pipeline { parts, end };
            }
        }
        if pipeline.bang {
            self.code.ops.push(Op::Invert);
        } else if check {
            self.code.ops.push(Op::Check);
        }
        Ok(())
    }

    fn command(&mut self, command: &AstCommand, check: bool) -> Result<(), Unfit> {
        match command {
            AstCommand::Simple(simple) => self.simple(simple),
            AstCommand::Compound(compound, redirects) => {
                let redirects = self.redirects(redirects.iter().flat_map(|list| &list.0))?;
                let redirected = !redirects.is_empty();
                if redirected {
                    self.code.ops.push(Op::Redirect(redirects));
                }
                self.compound(compound, check)?;
                if redirected {
                    self.code.ops.push(Op::Restore);
                }
                Ok(())
            }
            AstCommand::Function(function) => {
                let hole = self.hole(Op::Define { name: function.fname.to_string(), end: 0 });
                if function.body.1.is_some() {
                    return Err(Unfit::Unsupported);
                }
                self.compound(&function.body.0, check)?;
                self.code.ops.push(Op::Return);
                let end = self.here();
                self.fill(hole, end);
                Ok(())
            }
            AstCommand::ExtendedTest(test) => {
                let test = self.test(&test.expr)?;
                self.code.ops.push(Op::Test(test));
                Ok(())
            }
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Result<Test, Unfit> {
        Ok(match test {
            ExtendedTestExpr::And(left, right) => {
                Test::And(Box::new(self.test(left)?), Box::new(self.test(right)?))
            }
            ExtendedTestExpr::Or(left, right) => {
                Test::Or(Box::new(self.test(left)?), Box::new(self.test(right)?))
            }
            ExtendedTestExpr::Not(test) => Test::Not(Box::new(self.test(test)?)),
            ExtendedTestExpr::Parenthesized(test) => self.test(test)?,
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                Test::Unary(predicate.clone(), self.word(&word.value)?)
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                Test::Binary(predicate.clone(), self.word(&left.value)?, self.word(&right.value)?)
            }
        })
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Result<(), Unfit> {
        let mut command = Command::default();
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        for item in prefix {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    let AssignmentName::VariableName(name) = &assignment.name else {
                        return Err(Unfit::Unsupported);
                    };
                    let AssignmentValue::Scalar(value) = &assignment.value else {
                        return Err(Unfit::Unsupported);
                    };
                    let value = self.word(&value.value)?;
                    command.assignments.push(Assignment {
                        name: name.clone(),
                        value,
                        append: assignment.append,
                    });
                }
                item => self.item(item, &mut command)?,
            }
        }
        if let Some(word) = &simple.word_or_name {
            command.words.push(self.word(&word.value)?);
        }
        for item in suffix {
            self.item(item, &mut command)?;
        }
        self.code.ops.push(Op::Command(Box::new(command)));
        Ok(())
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, command: &mut Command) -> Result<(), Unfit> {
        match item {
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                command.words.push(self.word(&word.value)?);
            }
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                command.redirects.extend(self.redirects([redirect])?);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(..) => return Err(Unfit::Unsupported),
        }
        Ok(())
    }

    fn redirects<'a>(
        &mut self,
        all: impl IntoIterator<Item = &'a IoRedirect>,
    ) -> Result<Vec<Redirect>, Unfit> {
        let mut redirects = Vec::new();
        for redirect in all {
            let (descriptor, to) = match redirect {
                IoRedirect::File(descriptor, kind, target) => {
                    let (usual, mode) = match kind {
                        IoFileRedirectKind::Read => (0, Mode::Read),
                        IoFileRedirectKind::ReadAndWrite => (0, Mode::Keep),
                        IoFileRedirectKind::Write | IoFileRedirectKind::Clobber => (1, Mode::Write),
                        IoFileRedirectKind::Append => (1, Mode::Append),
                        IoFileRedirectKind::DuplicateInput => (0, Mode::Read),
                        IoFileRedirectKind::DuplicateOutput => (1, Mode::Write),
                    };
                    let to = match target {
                        IoFileRedirectTarget::Filename(word) => To::File(mode, self.word(&word.value)?),
                        IoFileRedirectTarget::Fd(number) => To::Descriptor(self.word(&number.to_string())?),
                        IoFileRedirectTarget::Duplicate(word) => To::Descriptor(self.word(&word.value)?),
                        IoFileRedirectTarget::ProcessSubstitution(..) => return Err(Unfit::Unsupported),
                    };
                    (descriptor.unwrap_or(usual), to)
                }
                IoRedirect::HereDocument(descriptor, document) => {
                    let text = &document.doc.value;
                    let word =
                        if document.requires_expansion { self.quoted(text)? } else { Word::literal(text) };
                    (descriptor.unwrap_or(0), To::Text(word))
                }
                IoRedirect::HereString(descriptor, word) => {
                    let mut word = self.word(&word.value)?;
                    word.pieces.extend(Word::literal("\n").pieces);
                    (descriptor.unwrap_or(0), To::Text(word))
                }
                IoRedirect::OutputAndError(word, append) => {
                    let mode = if *append { Mode::Append } else { Mode::Write };
                    (1, To::Both(mode, self.word(&word.value)?))
                }
            };
            let descriptor = usize::try_from(descriptor).ok().filter(|number| *number < 10);
            redirects.push(Redirect { descriptor: descriptor.ok_or(Unfit::Unsupported)?, to });
        }
        Ok(redirects)
    }

    fn compound(&mut self, compound: &CompoundCommand, check: bool) -> Result<(), Unfit> {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, check),
            CompoundCommand::Subshell(subshell) => {
                let hole = self.hole(Op::Subshell { end: 0 });
                self.part(hole, |compiler| compiler.list(&subshell.list, check))
            }
            CompoundCommand::Arithmetic(arithmetic) => {
                let arithmetic = self.arithmetic(&arithmetic.expr.value)?;
                self.code.ops.push(Op::Arithmetic(arithmetic));
                Ok(())
            }
            CompoundCommand::IfClause(clause) => {
                let mut ends = Vec::new();
                self.list(&clause.condition, false)?;
                let mut next = self.hole(Op::Unless(0));
                self.list(&clause.then, check)?;
                let mut otherwise = false;
                for branch in clause.elses.iter().flatten() {
                    ends.push(self.hole(Op::Jump(0)));
                    let here = self.here();
                    self.fill(next, here);
                    match &branch.condition {
                        Some(condition) => {
                            self.list(condition, false)?;
                            next = self.hole(Op::Unless(0));
                        }
                        None => otherwise = true,
                    }
                    self.list(&branch.body, check)?;
                }
                if !otherwise {
                    ends.push(self.hole(Op::Jump(0)));
                    let here = self.here();
                    self.fill(next, here);
                    // Nothing was run: that is a success.
                    self.code.ops.push(Op::Status(0));
                }
                let end = self.here();
                ends.into_iter().for_each(|hole| self.fill(hole, end));
                Ok(())
            }
            CompoundCommand::WhileClause(clause) => {
                self.while_loop(&clause.0, &clause.1.list, Op::Unless(0), check)
            }
            CompoundCommand::UntilClause(clause) => {
                self.while_loop(&clause.0, &clause.1.list, Op::If(0), check)
            }
            CompoundCommand::ForClause(clause) => {
                let words = match &clause.values {
                    None => None,
                    Some(words) => {
                        Some(words.iter().map(|word| self.word(&word.value)).collect::<Result<Vec<_>, _>>()?)
                    }
                };
                let next = self.here() + 1;
                let begin = self.hole(Op::For { words, next, end: 0 });
                let step = self.hole(Op::Next { variable: clause.variable_name.clone(), otherwise: 0 });
                self.list(&clause.body.list, check)?;
                self.code.ops.push(Op::Jump(next));
                let exit = self.here();
                self.fill(step, exit);
                self.code.ops.push(Op::EndLoop);
                let end = self.here();
                self.fill(begin, end);
                Ok(())
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                if let Some(initializer) = &clause.initializer {
                    let arithmetic = self.arithmetic(&initializer.value)?;
                    self.code.ops.push(Op::Arithmetic(arithmetic));
                }
                let begin = self.hole(Op::Loop { next: 0, end: 0 });
                let top = self.hole(Op::Jump(0));
                let next = self.here();
                if let Op::Loop { next: target, .. } = &mut self.code.ops[begin] {
                    *target = next;
                }
                if let Some(updater) = &clause.updater {
                    let arithmetic = self.arithmetic(&updater.value)?;
                    self.code.ops.push(Op::Arithmetic(arithmetic));
                }
                let condition = self.here();
                self.fill(top, condition);
                let arithmetic =
                    self.arithmetic(clause.condition.as_ref().map_or("1", |text| &text.value))?;
                self.code.ops.push(Op::Arithmetic(arithmetic));
                let exit = self.hole(Op::Unless(0));
                self.list(&clause.body.list, check)?;
                self.code.ops.push(Op::Jump(next));
                self.end_loop(begin, exit);
                Ok(())
            }
            CompoundCommand::CaseClause(clause) => {
                let word = self.word(&clause.value.value)?;
                let mut arms = Vec::new();
                for case in &clause.cases {
                    let patterns = case.patterns.iter().map(|word| self.word(&word.value)).collect::<Result<
                        Vec<_>,
                        _,
                    >>(
                    )?;
                    arms.push((patterns, 0));
                }
                let hole = self.hole(Op::Done);
                let mut ends = Vec::new();
                for (case, arm) in clause.cases.iter().zip(&mut arms) {
                    arm.1 = self.here();
                    match &case.cmd {
                        Some(list) => self.list(list, check)?,
                        None => self.code.ops.push(Op::Status(0)),
                    }
                    ends.push(self.hole(Op::Jump(0)));
                }
                let otherwise = self.here();
                self.code.ops.push(Op::Status(0));
                let end = self.here();
                ends.into_iter().for_each(|hole| self.fill(hole, end));
                self.code.ops[hole] = Op::Case { word, arms, otherwise };
                Ok(())
            }
        }
    }

    fn while_loop(
        &mut self,
        condition: &CompoundList,
        body: &CompoundList,
        leave: Op,
        check: bool,
    ) -> Result<(), Unfit> {
        let next = self.here() + 1;
        let begin = self.hole(Op::Loop { next, end: 0 });
        self.list(condition, false)?;
        let exit = self.hole(leave);
        self.list(body, check)?;
        self.code.ops.push(Op::Jump(next));
        self.end_loop(begin, exit);
        Ok(())
    }

    fn end_loop(&mut self, begin: usize, exit: usize) {
        let here = self.here();
        self.fill(exit, here);
        self.code.ops.extend([Op::Status(0), Op::EndLoop]);
        let end = self.here();
        self.fill(begin, end);
    }

    /// Has a command substitution run before what uses it.
    pub fn capture(&mut self, text: &str) -> Result<usize, Unfit> {
        let slot = self.slots;
        self.slots += 1;
        let hole = self.hole(Op::Capture { slot, end: 0 });
        self.part(hole, |compiler| compiler.script(text))?;
        Ok(slot)
    }
}
