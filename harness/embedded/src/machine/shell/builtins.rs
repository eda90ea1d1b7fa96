//! Builtins that change the state of the shell.

use super::error::ShellError;
use super::interpreter::{Shell, Wait};
use crate::machine::descriptors::STDIN;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::step::StepOutcome;

/// Returns whether `name` is a builtin.
pub(super) fn is_builtin(name: &str) -> bool {
    matches!(name, "exit" | "trap" | "wait" | "read")
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
        match name {
            "exit" => {
                let number = arguments.first().and_then(|text| text.parse::<i64>().ok());
                let status = number.map_or(self.status, |number| (number & 255) as i32);
                return Ok(Some(StepOutcome::Exit(status)));
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
                let names = arguments.iter().map(String::as_str).filter(|argument| *argument != "-r");
                let names: Vec<&str> = names.collect();
                if names.iter().any(|name| name.starts_with('-')) {
                    return Err(ShellError::Unsupported("an option of `read`"));
                }
                let line = kernel.descriptor(pid, STDIN).and_then(|input| kernel.read_line(input));
                let line = String::from_utf8_lossy(&line.unwrap_or_default()).into_owned();
                self.status = i32::from(!line.ends_with('\n'));
                self.assign_line(if names.is_empty() { &["REPLY"] } else { &names }, &line)?;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Splits a line into variables; the last one takes the rest.
    fn assign_line(&mut self, names: &[&str], line: &str) -> Result<(), ShellError> {
        let mut rest = line.trim();
        for (at, name) in names.iter().enumerate() {
            let (value, after) = if at + 1 == names.len() {
                (rest, "")
            } else {
                rest.split_once([' ', '\t']).map_or((rest, ""), |(value, after)| (value, after.trim_start()))
            };
            rest = after;
            self.set_variable(name, value.to_owned())?;
        }
        Ok(())
    }
}
