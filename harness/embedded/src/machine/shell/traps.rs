//! Traps.

use std::sync::Arc;

use super::compile::compile;
use super::error::ShellError;
use super::interpreter::{Frame, Shell, Wait};
use super::script::{Op, Position};
use crate::machine::step::SignalNumber;

/// Parses the name or number of a signal that a script may trap.
fn parse_signal(name: &str) -> Option<SignalNumber> {
    let name = name.to_ascii_uppercase();
    Some(match name.strip_prefix("SIG").unwrap_or(&name) {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "USR1" => 10,
        "USR2" => 12,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        number => number.parse().ok().filter(|number| (1..65).contains(number))?,
    })
}

impl Shell {
    /// `trap`: returns its status.
    pub(super) fn trap(&mut self, arguments: &[String]) -> Result<i32, ShellError> {
        let (action, names) = match arguments {
            [] => return Ok(0),
            [dash, rest @ ..] if dash == "--" => return self.trap(rest),
            // A number as the first argument resets, as `-` does.
            [first, ..] if first.parse::<SignalNumber>().is_ok() => (None, arguments),
            [dash, names @ ..] if dash == "-" => (None, names),
            [action, names @ ..] => (Some(action), names),
        };
        let mut status = 0;
        for name in names {
            if ["EXIT", "0"].contains(&name.as_str()) {
                return Err(ShellError::Unsupported("a trap of EXIT"));
            }
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

    /// Continues after a trap action, with the status from before.
    pub(super) fn return_from_trap(&mut self) {
        if let Some(Frame::Trap { return_to, status, captures }) = self.frames.pop() {
            self.position = return_to;
            self.status = status;
            self.captures = captures;
        }
    }
}
