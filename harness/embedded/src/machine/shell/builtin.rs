//! Commands that a shell does itself.

use super::super::kernel::Kernel;
use super::super::process::{Pid, SIGTERM};
use super::super::program::{Loaded, load};
use super::operate::Stopped;
use super::trap::signal;
use super::{Flow, Frame, Shell, State, quick};

/// What a builtin gave.
pub(super) struct Outcome {
    pub status: i32,
    /// What it writes.
    pub text: String,
    pub flow: Flow,
}

impl Outcome {
    pub fn status(status: i32) -> Self {
        Self { status, text: String::new(), flow: Flow::Go }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::status(0) }
    }

    fn flow(flow: Flow) -> Self {
        Self { flow, ..Self::status(0) }
    }
}

impl Shell {
    /// Does a builtin, or a program that is as quick as one; none if it is neither.
    pub(super) fn builtin(
        &mut self,
        words: &[String],
        me: Pid,
        kernel: &mut Kernel,
    ) -> Result<Option<Outcome>, Stopped> {
        let (name, arguments) = (words[0].as_str(), &words[1..]);
        let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<i64>().ok());
        Ok(Some(match name {
            "exit" => {
                let code = number(0).map_or(self.status, |number| (number & 255) as i32);
                Outcome::flow(self.leave(code, me, kernel))
            }
            "return" => {
                let status = number(0).map_or(self.status, |number| (number & 255) as i32);
                let flow = self.come_back(Some(status), me, kernel);
                Outcome { flow, ..Outcome::status(self.status) }
            }
            "break" | "continue" => {
                let count = number(0).unwrap_or(1).max(1);
                self.leave_loop(count, name == "continue", me, kernel);
                Outcome::status(0)
            }
            "cd" => {
                let path = arguments.first().map_or("/root", String::as_str);
                let path = kernel.absolute(me, path);
                match kernel.change_directory(me, &path) {
                    Ok(()) => Outcome::status(0),
                    Err(error) => {
                        kernel.say(
                            me,
                            2,
                            &format!("{}: cd: can't cd to {path}: {}\n", self.name, error.text()),
                        );
                        Outcome::status(1)
                    }
                }
            }
            "export" | "readonly" | "local" | "typeset" | "declare" => {
                for argument in arguments {
                    if let Some((variable, value)) = argument.split_once('=') {
                        self.set(variable, value.to_owned())?;
                    }
                }
                Outcome::status(0)
            }
            "unset" => {
                for argument in arguments.iter().filter(|argument| !argument.starts_with('-')) {
                    std::sync::Arc::make_mut(&mut self.variables).remove(argument);
                    std::sync::Arc::make_mut(&mut self.functions).remove(argument);
                }
                Outcome::status(0)
            }
            "set" => self.set_options(arguments),
            "shift" => {
                let count = usize::try_from(number(0).unwrap_or(1)).unwrap_or_default();
                if count > self.arguments.len() {
                    Outcome::status(1)
                } else {
                    self.arguments.drain(..count);
                    Outcome::status(0)
                }
            }
            "trap" => Outcome::status(self.trap(arguments)),
            "eval" => match Self::compiled(&arguments.join(" ")) {
                Some(code) => {
                    self.call(super::code::Place { code, at: 0 }, None, None);
                    Outcome::status(self.status)
                }
                None => return Err(super::expand::Bad("eval: syntax error".to_owned()).into()),
            },
            "wait" => {
                let which: Vec<u64> = arguments
                    .iter()
                    .filter(|argument| !argument.starts_with('-'))
                    .map(|argument| self.job(argument).unwrap_or(u64::MAX))
                    .collect();
                self.state = State::Wait((!which.is_empty()).then_some(which));
                Outcome::status(self.status)
            }
            "read" => {
                let names: Vec<String> =
                    arguments.iter().filter(|word| !word.starts_with('-')).cloned().collect();
                let names = if names.is_empty() { vec!["REPLY".to_owned()] } else { names };
                self.state = State::Read(names);
                Outcome::status(0)
            }
            "kill" => self.kill(arguments, me, kernel),
            "jobs" => Outcome::status(0),
            "command" | "type" | "which" => match arguments {
                [flag, name, ..] if flag == "-v" || flag == "-V" => self.find(name),
                [name, ..] if words[0] != "command" => self.find(name),
                // `command` runs what follows, but no function; there is no way round a function here.
                rest if !rest.is_empty() => return self.builtin(rest, me, kernel),
                _ => Outcome::status(0),
            },
            _ => return Ok(self.quick(words, me, kernel)),
        }))
    }

    fn find(&self, name: &str) -> Outcome {
        let there = self.functions.contains_key(name)
            || !matches!(load(&[name.to_owned()], &self.variables), Loaded::Unknown)
            || quick::is_quick(name);
        if there { Outcome::text(format!("{name}\n")) } else { Outcome::status(127) }
    }

    fn set_options(&mut self, arguments: &[String]) -> Outcome {
        for (at, argument) in arguments.iter().enumerate() {
            match argument.as_str() {
                "--" => {
                    self.arguments = arguments[at + 1..].to_vec();
                    break;
                }
                word if word.starts_with('-') => self.strict |= word.contains('e') && !word.contains('o'),
                word if word.starts_with('+') => self.strict &= !word.contains('e'),
                "errexit" if at > 0 && arguments[at - 1] == "-o" => self.strict = true,
                _ if at > 0 && arguments[at - 1].ends_with('o') => {}
                _ => {
                    self.arguments = arguments[at..].to_vec();
                    break;
                }
            }
        }
        Outcome::status(0)
    }

    fn leave_loop(&mut self, count: i64, again: bool, me: Pid, kernel: &mut Kernel) {
        let loops = self.frames.iter().rev().take_while(|frame| !matches!(frame, Frame::Call { .. }));
        let loops = loops.filter(|frame| matches!(frame, Frame::Loop { .. })).count() as i64;
        if loops == 0 {
            return;
        }
        let mut left = count.min(loops);
        self.unwind(me, kernel, |frame| {
            left -= i64::from(matches!(frame, Frame::Loop { .. }));
            left == 0
        });
        if let Some(Frame::Loop { next, end, .. }) = self.frames.last() {
            self.place.at = if again { *next } else { *end };
            if !again {
                self.frames.pop();
            }
        }
    }

    /// The inner number of a process by what names it: a number or `%1`.
    fn job(&self, name: &str) -> Option<u64> {
        match name.strip_prefix('%') {
            Some("" | "%" | "+") => self.jobs.last().map(|job| job.inner),
            Some(at) => self.jobs.get(at.parse::<usize>().ok()?.checked_sub(1)?).map(|job| job.inner),
            None => name.parse().ok(),
        }
    }

    fn kill(&mut self, arguments: &[String], me: Pid, kernel: &mut Kernel) -> Outcome {
        let mut sig = SIGTERM;
        let mut targets = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = match argument.as_str() {
                "-s" | "-n" => rest.next().map_or("TERM", String::as_str),
                "-l" => return Outcome::text("TERM\n"),
                "--" => continue,
                word if targets.is_empty()
                    && word.starts_with('-')
                    && word.len() > 1
                    && signal(&word[1..]).is_some() =>
                {
                    &word[1..]
                }
                _ => {
                    targets.push(argument);
                    continue;
                }
            };
            match signal(name) {
                Some(number) => sig = number,
                None => {
                    kernel.say(me, 2, &format!("{}: kill: bad signal name '{name}'\n", self.name));
                    return Outcome::status(1);
                }
            }
        }
        let mut status = 0;
        for target in targets {
            let number = if target.starts_with('%') {
                self.job(target).map(|inner| inner as i64)
            } else {
                target.parse().ok()
            };
            let found: Vec<Pid> = match number {
                // A group, or all: the model knows no groups but containers.
                Some(..=0) => {
                    kernel.container(me).map(|of| of.members.iter().copied().collect()).unwrap_or_default()
                }
                Some(number) => kernel.inner(me, number as u64).into_iter().collect(),
                None => Vec::new(),
            };
            if found.is_empty() {
                kernel.say(me, 2, &format!("{}: can't kill pid {target}: No such process\n", self.name));
                status = 1;
            }
            let mut own = false;
            for pid in found {
                if pid == me {
                    own = true;
                } else {
                    kernel.signal(pid, sig);
                }
            }
            if own && sig != 0 {
                let first = kernel.is_first(me);
                match self.on(sig, first) {
                    super::Reaction::Know => self.pending.push(sig),
                    super::Reaction::Ignore => {}
                    super::Reaction::Exit(code) => {
                        return Outcome::flow(Flow::Stop(super::Turn::Exit(code)));
                    }
                }
            }
        }
        Outcome::status(status)
    }
}
