//! Commands in the containers of a kind node, by the node's runc.
//!
//! `ctr tasks exec` lost the output of 4 of 480 short commands on a busy host: it deletes a process
//! that has ended before its pipes are open.

use serde::Deserialize;

use crate::docker::ExecOutput;

/// Exit status of runc if it cannot run a command, or of the command.
const RUNC_FAILED: i64 = 255;

/// Returns the arguments that run a command in a container, with the environment and the control
/// group of its first process.
pub(super) fn runc_exec<'a>(container: &'a str, command: &'a [String]) -> Vec<&'a str> {
    let runc = ["runc", "--root", "/run/containerd/runc/k8s.io", "--log-format", "json", "exec", container];
    runc.into_iter().chain(command.iter().map(String::as_str)).collect()
}

/// A line of the log of runc.
#[derive(Deserialize)]
struct LogLine {
    level: String,
    msg: String,
}

/// Returns the reason why runc could not run a command.
pub(super) fn runc_problem(output: &ExecOutput) -> Option<String> {
    let lines = output.stderr.lines().filter(|_| output.code == RUNC_FAILED);
    let mut logged = lines.filter_map(|line| serde_json::from_str::<LogLine>(line).ok());
    let failure = logged.find(|line| line.level == "error" && line.msg.starts_with("exec failed: "))?;
    Some(failure.msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_runc_are_not_those_of_commands() {
        let failed = r#"{"level":"error","msg":"exec failed: container does not exist","time":"2026-11-30T21:10:24Z"}"#;
        let warning = r#"{"level":"warning","msg":"exec failed: container does not exist","time":""}"#;
        for (code, stderr, problem) in [
            (255, failed.to_owned(), Some("exec failed: container does not exist")),
            (255, format!("{warning}\n{failed}\n"), Some("exec failed: container does not exist")),
            (255, "exec failed: by the command".to_owned(), None),
            (255, String::new(), None),
            (1, failed.to_owned(), None),
            (0, String::new(), None),
        ] {
            let output = ExecOutput { code, stdout: String::new(), stderr };
            assert_eq!(runc_problem(&output).as_deref(), problem, "{code} {}", output.stderr);
        }
    }
}
