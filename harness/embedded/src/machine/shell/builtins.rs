//! Builtins that change the state of the shell.

use super::super::ids::Pid;
use super::super::kernel::Kernel;
use super::super::program::StepOutcome;
use super::error::ShellError;
use super::interpreter::{Frame, Shell, Wait};

/// Returns whether `name` is a builtin.
pub(super) fn is_builtin(name: &str) -> bool {
    matches!(name, "exit" | "break" | "continue" | "trap" | "wait" | "read")
}

impl Shell {
    /// Executes a builtin.
    pub(super) fn builtin(
        &mut self,
        words: &[String],
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<Option<StepOutcome>, ShellError> {
        let (name, arguments) = (words[0].as_str(), &words[1..]);
        let number = arguments.first().and_then(|text| text.parse::<i64>().ok());
        match name {
            "exit" => {
                let status = number.map_or(self.status, |number| (number & 255) as i32);
                return Ok(self.exit(status, pid, kernel));
            }
            "trap" => self.status = self.trap(arguments)?,
            "wait" => {
                let is_operand = |argument: &&String| !argument.starts_with('-');
                let pids: Vec<u64> = arguments
                    .iter()
                    .filter(is_operand)
                    .map(|argument| argument.parse().map_err(|_| ShellError::Unsupported("job control")))
                    .collect::<Result<_, _>>()?;
                self.wait = Wait::Jobs((!pids.is_empty()).then_some(pids));
            }
            "read" => {
                let names = arguments.iter().filter(|argument| *argument != "-r");
                if names.clone().any(|name| name.starts_with('-')) {
                    return Err(ShellError::Unsupported("an option of `read`"));
                }
                let names: Vec<String> = names.cloned().collect();
                self.status = 0;
                self.wait = Wait::Line(if names.is_empty() { vec!["REPLY".to_owned()] } else { names });
            }
            _ => {
                self.leave_loop(number.unwrap_or(1).max(1), name == "continue", pid, kernel);
                self.status = 0;
            }
        }
        Ok(None)
    }

    /// `break` and `continue`, of the `levels`-th enclosing loop.
    fn leave_loop(&mut self, levels: i64, repeat: bool, pid: Pid, kernel: &mut Kernel) {
        let frames = self.frames.iter().rev().take_while(|frame| !matches!(frame, Frame::Trap { .. }));
        let loops = frames.filter(|frame| matches!(frame, Frame::Loop { .. })).count() as i64;
        if loops == 0 {
            return;
        }
        let mut left = levels.min(loops);
        self.unwind(pid, kernel, |frame| {
            left -= i64::from(matches!(frame, Frame::Loop { .. }));
            left == 0
        });
        if let Some(Frame::Loop { next, end, .. }) = self.frames.last() {
            self.position.index = if repeat { *next } else { *end };
            if !repeat {
                self.frames.pop();
            }
        }
    }
}
