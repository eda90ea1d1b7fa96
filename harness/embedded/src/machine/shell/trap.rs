//! Traps: what a shell does about signals, and at its end.

use std::sync::Arc;

use super::super::kernel::Kernel;
use super::super::process::{Pid, Sig};
use super::super::program::Turn;
use super::code::{Code, Op, Place};
use super::compile::compile;
use super::{Flow, Frame, Shell, State};

/// A signal's number; 0 for `EXIT`.
pub(super) fn signal(name: &str) -> Option<Sig> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    Some(match name {
        "EXIT" => 0,
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ABRT" => 6,
        "KILL" => 9,
        "USR1" => 10,
        "SEGV" => 11,
        "USR2" => 12,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        "CHLD" => 17,
        "CONT" => 18,
        "STOP" => 19,
        "TSTP" => 20,
        "WINCH" => 28,
        number => number.parse().ok().filter(|number| *number < 65)?,
    })
}

impl Shell {
    /// `trap`
    pub(super) fn trap(&mut self, arguments: &[String]) -> i32 {
        let (action, names) = match arguments {
            [] => return 0,
            [dash, rest @ ..] if dash == "--" => return self.trap(rest),
            // A first argument that is a number resets, as `-` does.
            [first, ..] if first.parse::<Sig>().is_ok() => (None, arguments),
            [dash, names @ ..] if dash == "-" => (None, names),
            [action, names @ ..] => (Some(action), names),
        };
        let mut status = 0;
        for name in names {
            let Some(sig) = signal(name) else {
                status = 1;
                continue;
            };
            match action {
                None => drop(self.traps.remove(&sig)),
                Some(action) if action.is_empty() => drop(self.traps.insert(sig, None)),
                Some(action) => match compile(action, Op::Return) {
                    Ok(code) => drop(self.traps.insert(sig, Some(Arc::new(code)))),
                    Err(_) => status = 1,
                },
            }
        }
        status
    }

    /// Begins the action of a signal that has come, if it is not waiting for something.
    pub(super) fn run_traps(&mut self) {
        if self.pending.is_empty() || !matches!(self.state, State::Running) {
            return;
        }
        let sig = self.pending.remove(0);
        if let Some(Some(code)) = self.traps.get(&sig) {
            let code = code.clone();
            let status = self.status;
            self.call(Place { code, at: 0 }, None, Some(status));
        }
    }

    /// Goes to another place, to come back from there.
    pub(super) fn call(&mut self, to: Place, arguments: Option<Vec<String>>, status: Option<i32>) {
        let arguments = arguments.map(|arguments| std::mem::replace(&mut self.arguments, arguments));
        let slots = vec![String::new(); to.code.slots];
        let slots = std::mem::replace(&mut self.slots, slots);
        let back = std::mem::replace(&mut self.place, to);
        self.frames.push(Frame::Call { back, arguments, status, slots });
    }

    /// Ends: with the action for the end first, if there is one.
    pub(super) fn leave(&mut self, code: i32, me: Pid, kernel: &mut Kernel) -> Flow {
        if let Some(Some(action)) = self.traps.remove(&0) {
            self.unwind(me, kernel, |_| false);
            self.leaving = Some(code);
            self.slots = vec![String::new(); action.slots];
            self.place = Place { code: action, at: 0 };
            return Flow::Go;
        }
        Flow::Stop(Turn::Exit(self.leaving.unwrap_or(code)))
    }

    /// Takes frames off until one that `stop` says; it stays.
    pub(super) fn unwind(&mut self, me: Pid, kernel: &mut Kernel, mut stop: impl FnMut(&Frame) -> bool) {
        while let Some(frame) = self.frames.pop() {
            if stop(&frame) {
                self.frames.push(frame);
                return;
            }
            if let Frame::Redirect(saved) = frame {
                self.restore(saved, me, kernel);
            }
        }
    }

    /// The code of `eval`.
    pub(super) fn compiled(text: &str) -> Option<Arc<Code>> {
        compile(text, Op::Return).ok().map(Arc::new)
    }
}
