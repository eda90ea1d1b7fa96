//! Builtins that change the state of the shell.

use super::error::ShellError;
use super::interpreter::{Shell, Wait};
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
                let names = arguments.iter().filter(|argument| *argument != "-r");
                if names.clone().any(|name| name.starts_with('-')) {
                    return Err(ShellError::Unsupported("an option of `read`"));
                }
                let names: Vec<String> = names.cloned().collect();
                self.read_line(if names.is_empty() { vec!["REPLY".to_owned()] } else { names }, pid, kernel);
            }
            _ => {}
        }
        Ok(None)
    }
}
