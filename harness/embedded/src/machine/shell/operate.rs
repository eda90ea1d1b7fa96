//! One operation.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::cost;
use super::super::data::Data;
use super::super::kernel::Kernel;
use super::super::process::Pid;
use super::super::program::{Idle, Loaded, Program, Turn, load};
use super::code::{Command, Op, Piece, Place, Word};
use super::expand::Bad;
use super::resume::CAPTURE;
use super::{Flow, Frame, Job, Shell, State, quick};

/// How deep functions may call one another.
const DEEPEST: usize = 1000;

impl Shell {
    pub(super) fn operate(&mut self, me: Pid, kernel: &mut Kernel) -> Flow {
        match self.try_operate(me, kernel) {
            Ok(flow) | Err(Stopped::Flow(flow)) => flow,
            Err(Stopped::Bad(Bad(what))) => {
                kernel.say(me, 2, &format!("{}: {what}\n", self.name));
                self.leave(2, me, kernel)
            }
        }
    }

    fn try_operate(&mut self, me: Pid, kernel: &mut Kernel) -> Result<Flow, Stopped> {
        let code = Arc::clone(&self.place.code);
        let at = self.place.at;
        self.place.at += 1;
        match &code.ops[at] {
            Op::Command(command) => return self.command(command, me, kernel),
            Op::Arithmetic(arithmetic) => self.status = i32::from(self.calculate(arithmetic)? == 0),
            Op::Test(test) => self.status = i32::from(!self.extended_test(test, me, kernel)?),
            Op::Jump(to) => self.place.at = *to,
            Op::Unless(to) => {
                if self.status != 0 {
                    self.place.at = *to;
                }
            }
            Op::If(to) => {
                if self.status == 0 {
                    self.place.at = *to;
                }
            }
            Op::Invert => self.status = i32::from(self.status == 0),
            Op::Status(status) => self.status = *status,
            Op::Check => {
                if self.strict && self.status != 0 {
                    return Ok(self.leave(self.status, me, kernel));
                }
            }
            Op::Background { end } => {
                let mut descriptors = Self::descriptors(me, kernel);
                // What runs beside has no input (POSIX, asynchronous lists).
                let nothing = kernel.open(super::super::io::Target::Null);
                descriptors[0] = Some(nothing);
                let inner = self.fork(at + 1, descriptors, me, kernel);
                kernel.close(nothing);
                let inner = inner?;
                self.background = Some(inner);
                self.jobs.push(Job { inner, code: None });
                self.status = 0;
                self.place.at = *end;
            }
            Op::Subshell { end } => {
                let inner = self.fork(at + 1, Self::descriptors(me, kernel), me, kernel)?;
                self.place.at = *end;
                return Ok(self.wait_for(vec![inner]));
            }
            Op::Capture { slot, end } => {
                let mut descriptors = Self::descriptors(me, kernel);
                let (reader, writer) = kernel.pipe();
                descriptors[1] = Some(writer);
                let inner = self.fork(at + 1, descriptors, me, kernel);
                kernel.close(writer);
                kernel.install(me, CAPTURE, Some(reader));
                self.state = State::Capture {
                    child: Job { inner: inner?, code: None },
                    slot: *slot,
                    text: Vec::new(),
                    ended: false,
                };
                self.place.at = *end;
            }
            Op::Pipeline { parts, end } => {
                self.place.at = *end;
                return self.pipeline(parts, me, kernel);
            }
            Op::Done => return Ok(self.leave(self.status, me, kernel)),
            Op::Redirect(redirects) => match self.redirect(redirects, me, kernel)? {
                Some(saved) => self.frames.push(Frame::Redirect(saved)),
                None => {
                    // The command is not run: it goes on after its end.
                    let mut depth = 0;
                    let restore = code.ops.iter().enumerate().skip(at + 1).find(|(_, op)| match op {
                        Op::Redirect(_) => {
                            depth += 1;
                            false
                        }
                        Op::Restore if depth == 0 => true,
                        Op::Restore => {
                            depth -= 1;
                            false
                        }
                        _ => false,
                    });
                    self.place.at = restore.map_or(code.ops.len() - 1, |(at, _)| at + 1);
                }
            },
            Op::Restore => {
                if let Some(Frame::Redirect(saved)) = self.frames.pop() {
                    self.restore(saved, me, kernel);
                }
            }
            Op::Loop { next, end } => {
                self.frames.push(Frame::Loop { next: *next, end: *end, items: VecDeque::new() });
            }
            Op::For { words, next, end } => {
                let items = match words {
                    Some(words) => self.fields(words, me, kernel)?,
                    None => self.arguments.clone(),
                };
                self.status = 0;
                self.frames.push(Frame::Loop { next: *next, end: *end, items: items.into() });
            }
            Op::Next { variable, otherwise } => {
                let item = match self.frames.last_mut() {
                    Some(Frame::Loop { items, .. }) => items.pop_front(),
                    _ => None,
                };
                match item {
                    Some(item) => self.set(variable, item)?,
                    None => self.place.at = *otherwise,
                }
            }
            Op::EndLoop => drop(self.frames.pop()),
            Op::Case { word, arms, otherwise } => {
                let text = self.single(word)?;
                let mut to = *otherwise;
                'arms: for (patterns, place) in arms {
                    for pattern in patterns {
                        if self.pattern(pattern)?.matches(&text) {
                            to = *place;
                            break 'arms;
                        }
                    }
                }
                self.place.at = to;
            }
            Op::Define { name, end } => {
                let place = Place { code: Arc::clone(&code), at: at + 1 };
                Arc::make_mut(&mut self.functions).insert(name.clone(), place);
                self.status = 0;
                self.place.at = *end;
            }
            Op::Return => return Ok(self.come_back(None, me, kernel)),
        }
        Ok(Flow::Go)
    }

    /// Back from a function, a trap's action or `eval`.
    pub(super) fn come_back(&mut self, status: Option<i32>, me: Pid, kernel: &mut Kernel) -> Flow {
        self.unwind(me, kernel, |frame| matches!(frame, Frame::Call { .. }));
        if let Some(status) = status {
            self.status = status;
        }
        match self.frames.pop() {
            Some(Frame::Call { back, arguments, status, slots }) => {
                self.place = back;
                self.slots = slots;
                if let Some(arguments) = arguments {
                    self.arguments = arguments;
                }
                if let Some(status) = status {
                    self.status = status;
                }
                Flow::Go
            }
            _ => self.leave(self.status, me, kernel),
        }
    }

    fn pipeline(&mut self, parts: &[usize], me: Pid, kernel: &mut Kernel) -> Result<Flow, Stopped> {
        let mut children = Vec::new();
        let mut input = None;
        for (at, part) in parts.iter().enumerate() {
            let mut descriptors = Self::descriptors(me, kernel);
            if let Some(input) = input {
                descriptors[0] = Some(input);
            }
            let pipe = (at + 1 < parts.len()).then(|| kernel.pipe());
            if let Some((_, writer)) = pipe {
                descriptors[1] = Some(writer);
            }
            let child = self.fork(*part, descriptors, me, kernel);
            for open in [input, pipe.map(|(_, writer)| writer)].into_iter().flatten() {
                kernel.close(open);
            }
            input = pipe.map(|(reader, _)| reader);
            match child {
                Ok(inner) => children.push(inner),
                Err(flow) => {
                    if let Some(input) = input {
                        kernel.close(input);
                    }
                    return Err(flow.into());
                }
            }
        }
        Ok(self.wait_for(children))
    }

    /// Whether this shell ends after the operation that it does: a command can take its place.
    fn is_last(&self) -> bool {
        let mut rest = self.place.code.ops[self.place.at..].iter().skip_while(|op| matches!(op, Op::Check));
        self.forked
            && self.frames.is_empty()
            && self.traps.is_empty()
            && matches!(rest.next(), Some(Op::Done))
    }

    fn command(&mut self, command: &Command, me: Pid, kernel: &mut Kernel) -> Result<Flow, Stopped> {
        let words = self.fields(&command.words, me, kernel)?;
        // What a substitution gave is the status of a command without words.
        if words.is_empty() {
            let captured =
                command.assignments.iter().map(|assignment| &assignment.value).chain(&command.words);
            if !captured.into_iter().any(has_capture) {
                self.status = 0;
            }
            self.assign_all(command)?;
            if let Some(saved) = self.redirect(&command.redirects, me, kernel)? {
                self.restore(saved, me, kernel);
            }
            return Ok(Flow::Go);
        }
        self.assign_all(command)?;
        let name = words[0].as_str();
        if name == "exec" {
            return self.exec(&words[1..], command, me, kernel);
        }
        let Some(saved) = self.redirect(&command.redirects, me, kernel)? else { return Ok(Flow::Go) };
        if let Some(place) = self.functions.get(name) {
            let place = place.clone();
            if self.frames.len() > DEEPEST {
                return Err(Bad("too deep recursion".to_owned()).into());
            }
            self.call(place, Some(words[1..].to_vec()), None);
            // They are put back when the function comes back.
            self.frames.push(Frame::Redirect(saved));
            return Ok(Flow::Go);
        }
        if quick::is_quick(name) && !quick::is_builtin(name) {
            if !kernel.can_fork(me) {
                kernel.say(me, 2, &format!("{}: can't fork: Resource temporarily unavailable\n", self.name));
                return Ok(self.leave(2, me, kernel));
            }
            self.debt += cost::EXEC;
        }
        if let Some(outcome) = self.builtin(&words, me, kernel)? {
            self.status = outcome.status;
            let mut flow = outcome.flow;
            if !outcome.text.is_empty()
                && let Some(turn) = self.write(1, Data::text(outcome.text), me, kernel)
            {
                flow = Flow::Stop(turn);
            }
            // What is read from a file is read before that is put back.
            if matches!(self.state, State::Read(_))
                && !saved.is_empty()
                && let Some(turn) = self.resume(me, kernel)
            {
                flow = Flow::Stop(turn);
            }
            match self.frames.last() {
                // What `eval` was given has the redirections of `eval`.
                Some(Frame::Call { .. }) if name == "eval" => self.frames.push(Frame::Redirect(saved)),
                _ => self.restore(saved, me, kernel),
            }
            return Ok(flow);
        }
        let program = match load(&words, &self.variables) {
            Loaded::Program(program) => *program,
            Loaded::Quick | Loaded::Unknown => {
                Program::Idle(Idle::unknown(format!("\"{}\"", words.join(" "))))
            }
        };
        if self.is_last() {
            // The descriptors stay as they are redirected: nobody needs the old ones.
            saved.into_iter().filter_map(|(_, open)| open).for_each(|open| kernel.close(open));
            return Ok(Flow::Stop(Turn::Become(Box::new(program))));
        }
        let inner = self.begin(program, Self::descriptors(me, kernel), me, kernel);
        self.restore(saved, me, kernel);
        Ok(self.wait_for(vec![inner?]))
    }

    /// `exec`: another program in this one's place, or descriptors for good.
    fn exec(
        &mut self,
        words: &[String],
        command: &Command,
        me: Pid,
        kernel: &mut Kernel,
    ) -> Result<Flow, Stopped> {
        let Some(saved) = self.redirect(&command.redirects, me, kernel)? else {
            return Ok(self.leave(1, me, kernel));
        };
        saved.into_iter().filter_map(|(_, open)| open).for_each(|open| kernel.close(open));
        if words.is_empty() {
            self.status = 0;
            return Ok(Flow::Go);
        }
        let program = match load(words, &self.variables) {
            Loaded::Program(program) => *program,
            Loaded::Quick => Program::Shell(Box::new(Self::of_words(words, &self.variables))),
            Loaded::Unknown => Program::Idle(Idle::unknown(format!("\"{}\"", words.join(" ")))),
        };
        Ok(Flow::Stop(Turn::Become(Box::new(program))))
    }

    fn assign_all(&mut self, command: &Command) -> Result<(), Bad> {
        for assignment in &command.assignments {
            let mut value = self.single(&assignment.value)?;
            if assignment.append {
                value.insert_str(0, self.variables.get(&assignment.name).map_or("", String::as_str));
            }
            self.set(&assignment.name, value)?;
        }
        Ok(())
    }
}

/// Whether a word has a command substitution, whose status counts then.
fn has_capture(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Capture { .. }))
}

/// Why an operation was not done to its end.
pub(super) enum Stopped {
    Bad(Bad),
    Flow(Flow),
}

impl From<Bad> for Stopped {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<Flow> for Stopped {
    fn from(flow: Flow) -> Self {
        Self::Flow(flow)
    }
}
