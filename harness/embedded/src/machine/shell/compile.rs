//! Compiles the text of a script. brush-parser supplies the grammar.

use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, Command as AstCommand, CommandPrefixOrSuffixItem,
    CompoundCommand, CompoundList, ForClauseCommand, IfClauseCommand, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, SeparatorOperator, SimpleCommand, WhileOrUntilClauseCommand,
};
use brush_parser::{Parser, ParserOptions, SourceInfo};

use super::error::ShellError;
use super::script::{Assignment, Command, Op, Redirect, RedirectTarget, Script, Word};
use crate::machine::open_file::MAX_DESCRIPTORS;
use crate::machine::paths::OpenMode;

/// Returns how brush-parser reads a script.
pub(super) fn parser_options() -> ParserOptions {
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

/// Compiles a script. `last` is the operation after its last command.
pub(super) fn compile(text: &str, last: Op) -> Result<Script, ShellError> {
    let mut compiler = Compiler::default();
    compiler.script(text)?;
    compiler.ops.push(last);
    Ok(Script { ops: compiler.ops, captures: compiler.captures })
}

#[derive(Default)]
pub(super) struct Compiler {
    ops: Vec<Op>,
    captures: usize,
}

impl Compiler {
    fn script(&mut self, text: &str) -> Result<(), ShellError> {
        let options = parser_options();
        let mut parser = Parser::new(text.as_bytes(), &options, &SourceInfo::default());
        let program = parser.parse_program().map_err(|_| ShellError::Syntax)?;
        program.complete_commands.iter().try_for_each(|list| self.list(list))
    }

    /// Emits an operation whose target `patch` sets later; returns its index.
    fn emit(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    /// Makes the operation at `index` jump to the next operation that is emitted.
    fn patch(&mut self, index: usize) {
        let here = self.ops.len();
        match &mut self.ops[index] {
            Op::Jump(target)
            | Op::JumpIfFailed(target)
            | Op::JumpIfSucceeded(target)
            | Op::Background { end: target }
            | Op::Subshell { end: target }
            | Op::Capture { end: target, .. }
            | Op::Redirect { end: target, .. }
            | Op::NextItem { done: target, .. } => *target = here,
            _ => {}
        }
    }

    /// Emits `op` and a body that runs in a shell of its own.
    fn child(
        &mut self,
        op: Op,
        body: impl FnOnce(&mut Self) -> Result<(), ShellError>,
    ) -> Result<(), ShellError> {
        let start = self.emit(op);
        body(self)?;
        self.ops.push(Op::Exit);
        self.patch(start);
        Ok(())
    }

    fn list(&mut self, list: &CompoundList) -> Result<(), ShellError> {
        for item in &list.0 {
            let and_or = |compiler: &mut Self| -> Result<(), ShellError> {
                compiler.pipeline(&item.0.first)?;
                for next in &item.0.additional {
                    let (op, pipeline) = match next {
                        AndOr::And(pipeline) => (Op::JumpIfFailed(0), pipeline),
                        AndOr::Or(pipeline) => (Op::JumpIfSucceeded(0), pipeline),
                    };
                    // A pipeline that is skipped leaves the status as it is.
                    let skip = compiler.emit(op);
                    compiler.pipeline(pipeline)?;
                    compiler.patch(skip);
                }
                Ok(())
            };
            match item.1 {
                SeparatorOperator::Async => self.child(Op::Background { end: 0 }, and_or)?,
                SeparatorOperator::Sequence => and_or(self)?,
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<(), ShellError> {
        if pipeline.timed.is_some() {
            return Err(ShellError::Unsupported("`time`"));
        }
        if pipeline.bang {
            return Err(ShellError::Unsupported("`!`"));
        }
        match pipeline.seq.as_slice() {
            [command] => self.command(command),
            _ => Err(ShellError::Unsupported("a pipeline")),
        }
    }

    fn command(&mut self, command: &AstCommand) -> Result<(), ShellError> {
        match command {
            AstCommand::Simple(simple) => self.simple(simple),
            AstCommand::Compound(compound, redirects) => {
                let redirects = self.redirects(redirects.iter().flat_map(|list| &list.0))?;
                if redirects.is_empty() {
                    return self.compound(compound);
                }
                let start = self.emit(Op::Redirect { redirects, end: 0 });
                self.compound(compound)?;
                self.ops.push(Op::Restore);
                self.patch(start);
                Ok(())
            }
            AstCommand::Function(_) => Err(ShellError::Unsupported("a function")),
            AstCommand::ExtendedTest(_) => Err(ShellError::Unsupported("`[[`")),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Result<(), ShellError> {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => {
                self.child(Op::Subshell { end: 0 }, |compiler| compiler.list(&subshell.list))
            }
            CompoundCommand::IfClause(clause) => self.if_clause(clause),
            CompoundCommand::WhileClause(clause) => self.while_clause(clause),
            CompoundCommand::ForClause(clause) => self.for_clause(clause),
            CompoundCommand::UntilClause(_) => Err(ShellError::Unsupported("`until`")),
            CompoundCommand::CaseClause(_) => Err(ShellError::Unsupported("`case`")),
            CompoundCommand::Arithmetic(_) => Err(ShellError::Unsupported("`((`")),
            CompoundCommand::ArithmeticForClause(_) => Err(ShellError::Unsupported("`for ((`")),
        }
    }

    fn if_clause(&mut self, clause: &IfClauseCommand) -> Result<(), ShellError> {
        let mut ends = Vec::new();
        self.list(&clause.condition)?;
        let mut next = self.emit(Op::JumpIfFailed(0));
        self.list(&clause.then)?;
        let mut has_else = false;
        for branch in clause.elses.iter().flatten() {
            ends.push(self.emit(Op::Jump(0)));
            self.patch(next);
            match &branch.condition {
                Some(condition) => {
                    self.list(condition)?;
                    next = self.emit(Op::JumpIfFailed(0));
                }
                None => has_else = true,
            }
            self.list(&branch.body)?;
        }
        if !has_else {
            ends.push(self.emit(Op::Jump(0)));
            self.patch(next);
            // An `if` of which no branch runs succeeds.
            self.ops.push(Op::SetStatus(0));
        }
        ends.into_iter().for_each(|jump| self.patch(jump));
        Ok(())
    }

    fn while_clause(&mut self, clause: &WhileOrUntilClauseCommand) -> Result<(), ShellError> {
        let next = self.ops.len();
        self.list(&clause.0)?;
        let exit = self.emit(Op::JumpIfFailed(0));
        self.list(&clause.1.list)?;
        self.ops.push(Op::Jump(next));
        self.patch(exit);
        self.ops.push(Op::SetStatus(0));
        Ok(())
    }

    fn for_clause(&mut self, clause: &ForClauseCommand) -> Result<(), ShellError> {
        let Some(values) = &clause.values else {
            return Err(ShellError::Unsupported("`for` without `in`"));
        };
        let words = values.iter().map(|word| self.field_word(&word.value)).collect::<Result<Vec<_>, _>>()?;
        self.ops.push(Op::BeginFor(words));
        let next = self.ops.len();
        let item = self.emit(Op::NextItem { variable: clause.variable_name.clone(), done: 0 });
        self.list(&clause.body.list)?;
        self.ops.push(Op::Jump(next));
        self.patch(item);
        self.ops.push(Op::EndFor);
        Ok(())
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Result<(), ShellError> {
        let mut command = Command::default();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    let (AssignmentName::VariableName(name), AssignmentValue::Scalar(value), false) =
                        (&assignment.name, &assignment.value, assignment.append)
                    else {
                        return Err(ShellError::Unsupported("an array or `+=`"));
                    };
                    if name == "IFS" {
                        return Err(ShellError::Unsupported("IFS"));
                    }
                    let value = self.word(&value.value)?;
                    command.assignments.push(Assignment { name: name.clone(), value });
                }
                item => self.command_item(item, &mut command)?,
            }
        }
        if let Some(word) = &simple.word_or_name {
            command.words.push(self.field_word(&word.value)?);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.command_item(item, &mut command)?;
        }
        self.ops.push(Op::Command(Box::new(command)));
        Ok(())
    }

    fn command_item(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        command: &mut Command,
    ) -> Result<(), ShellError> {
        match item {
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                command.words.push(self.field_word(&word.value)?);
            }
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                command.redirects.extend(self.redirects([redirect])?);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {
                return Err(ShellError::Unsupported("process substitution"));
            }
        }
        Ok(())
    }

    fn redirects<'a>(
        &mut self,
        all: impl IntoIterator<Item = &'a IoRedirect>,
    ) -> Result<Vec<Redirect>, ShellError> {
        all.into_iter().map(|redirect| self.redirect(redirect)).collect()
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Result<Redirect, ShellError> {
        let IoRedirect::File(descriptor, kind, target) = redirect else {
            return Err(ShellError::Unsupported("a here-document or `&>`"));
        };
        let (default, mode) = match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => (0, OpenMode::Read),
            IoFileRedirectKind::ReadAndWrite => (0, OpenMode::Update),
            IoFileRedirectKind::Write | IoFileRedirectKind::Clobber | IoFileRedirectKind::DuplicateOutput => {
                (1, OpenMode::Truncate)
            }
            IoFileRedirectKind::Append => (1, OpenMode::Append),
        };
        let target = match target {
            IoFileRedirectTarget::Filename(word) => RedirectTarget::File(mode, self.word(&word.value)?),
            IoFileRedirectTarget::Fd(number) => {
                RedirectTarget::Descriptor(Word::literal(&number.to_string()))
            }
            IoFileRedirectTarget::Duplicate(word) => RedirectTarget::Descriptor(self.word(&word.value)?),
            IoFileRedirectTarget::ProcessSubstitution(..) => {
                return Err(ShellError::Unsupported("process substitution"));
            }
        };
        let descriptor = usize::try_from(descriptor.unwrap_or(default)).ok();
        let descriptor = descriptor.filter(|number| *number < MAX_DESCRIPTORS);
        Ok(Redirect { descriptor: descriptor.ok_or(ShellError::Unsupported("this descriptor"))?, target })
    }

    /// Emits a command substitution; returns the slot of its output.
    pub(super) fn capture(&mut self, text: &str) -> Result<usize, ShellError> {
        let slot = self.captures;
        self.captures += 1;
        self.child(Op::Capture { slot, end: 0 }, |compiler| compiler.script(text))?;
        Ok(slot)
    }
}
