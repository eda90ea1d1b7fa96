//! Traps, and the end of a shell.

use std::sync::Arc;

use super::super::ids::{Pid, Signal};
use super::super::kernel::Kernel;
use super::super::program::StepOutcome;
use super::compile::compile;
use super::error::ShellError;
use super::interpreter::{Frame, Shell, Wait};
use super::script::{Op, Position};

/// Parses the name or number of a signal that a script may trap; `EXIT` is 0.
fn parse_signal(name: &str) -> Option<Signal> {
    let name = name.to_ascii_uppercase();
    Some(match name.strip_prefix("SIG").unwrap_or(&name) {
        "EXIT" => 0,
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "USR1" => 10,
        "USR2" => 12,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        number => number.parse().ok().filter(|number| *number < 65)?,
    })
}

impl Shell {
    /// `trap`: returns its status.
    pub(super) fn trap(&mut self, arguments: &[String]) -> Result<i32, ShellError> {
        let (action, names) = match arguments {
            [] => return Ok(0),
            [dash, rest @ ..] if dash == "--" => return self.trap(rest),
            // A number as the first argument resets, as `-` does.
            [first, ..] if first.parse::<Signal>().is_ok() => (None, arguments),
            [dash, names @ ..] if dash == "-" => (None, names),
            [action, names @ ..] => (Some(action), names),
        };
        let mut status = 0;
        for name in names {
            let Some(signal) = parse_signal(name) else {
                status = 1;
                continue;
            };
            match action {
                None => drop(self.traps.remove(&signal)),
                Some(action) if action.is_empty() => drop(self.traps.insert(signal, None)),
                Some(action) => {
                    let script = compile(action, Op::Return)?;
                    self.traps.insert(signal, Some(Arc::new(script)));
                }
            }
        }
        Ok(status)
    }

    /// Starts the action of a delivered signal, unless the shell waits.
    pub(super) fn start_trap(&mut self) {
        if self.pending_signals.is_empty() || !matches!(self.wait, Wait::Nothing) {
            return;
        }
        let signal = self.pending_signals.remove(0);
        if let Some(Some(action)) = self.traps.get(&signal) {
            let captures = vec![String::new(); action.captures];
            let action = Position { script: Arc::clone(action), index: 0 };
            self.frames.push(Frame::Trap {
                return_to: std::mem::replace(&mut self.position, action),
                status: self.status,
                captures: std::mem::replace(&mut self.captures, captures),
            });
        }
    }

    pub(super) fn return_from_trap(&mut self, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        self.unwind(pid, kernel, |frame| matches!(frame, Frame::Trap { .. }));
        match self.frames.pop() {
            Some(Frame::Trap { return_to, status, captures }) => {
                self.position = return_to;
                self.status = status;
                self.captures = captures;
                None
            }
            _ => self.exit(self.status, pid, kernel),
        }
    }

    /// Ends the shell, after the action of the `EXIT` trap if there is one.
    pub(super) fn exit(&mut self, status: i32, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        if let Some(Some(action)) = self.traps.remove(&0) {
            self.unwind(pid, kernel, |_| false);
            self.exit_status = Some(status);
            self.captures = vec![String::new(); action.captures];
            self.position = Position { script: action, index: 0 };
            return None;
        }
        Some(StepOutcome::Exit(self.exit_status.unwrap_or(status)))
    }

    /// Pops frames down to one that `is_target` accepts; that one stays.
    pub(super) fn unwind(
        &mut self,
        pid: Pid,
        kernel: &mut Kernel,
        mut is_target: impl FnMut(&Frame) -> bool,
    ) {
        while let Some(frame) = self.frames.pop() {
            if is_target(&frame) {
                self.frames.push(frame);
                return;
            }
            if let Frame::Redirect(saved) = frame {
                self.restore(saved, pid, kernel);
            }
        }
    }
}
