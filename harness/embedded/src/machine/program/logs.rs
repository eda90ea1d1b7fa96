//! `agnhost logs-generator`: lines in a log, spread over a time.

use std::time::Duration;

use evictlab_stress::duration;

use super::super::kernel::Kernel;
use super::super::process::Pid;
use super::Turn;
use crate::time::Time;

/// Writes lines.
pub(in super::super) struct Logs {
    total: u64,
    duration: Duration,
    done: u64,
    began: Option<Time>,
}

impl Logs {
    /// The program; the error is what it says instead.
    pub fn of(arguments: &[String]) -> Result<Self, String> {
        let mut logs = Self { total: 0, duration: Duration::ZERO, done: 0, began: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let flag = argument.trim_start_matches('-');
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, rest.next().cloned()),
            };
            match (name, value) {
                ("log-lines-total" | "t", Some(value)) => logs.total = value.parse().unwrap_or_default(),
                ("run-duration" | "d", Some(value)) => {
                    logs.duration = duration::parse(&value).unwrap_or_default()
                }
                _ => return Err(format!("Error: unknown flag: {argument}\n")),
            }
        }
        if logs.total == 0 {
            return Err("Invalid total number of lines: 0\n".to_owned());
        }
        if logs.duration.is_zero() {
            return Err("Invalid duration: 0s\n".to_owned());
        }
        Ok(logs)
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        const VERBS: [&str; 3] = ["POST", "GET", "PUT"];
        const NAMESPACES: [&str; 3] = ["kube-system", "default", "ns"];
        // Many lines are written a hundred times a second.
        const OFTEN: Duration = Duration::from_millis(10);
        let began = *self.began.get_or_insert(kernel.now);
        let delay = self.duration / u32::try_from(self.total).unwrap_or(u32::MAX);
        while self.done < self.total {
            let due = began + delay * u32::try_from(self.done).unwrap_or(u32::MAX);
            if due > kernel.now {
                return Turn::At(due.max(kernel.now + OFTEN));
            }
            let at = self.done as usize;
            let (verb, namespace) = (VERBS[at % 3], NAMESPACES[at / 3 % 3]);
            let code = 200 + at * 7 % 400;
            kernel.klog(
                me,
                "logs_generator.go:76",
                &format!(
                    "{at} {verb} /api/v1/namespaces/{namespace}/pods/{:04x} {code}",
                    at * 2654435761 % 65536
                ),
            );
            self.done += 1;
        }
        let end = began + self.duration;
        if kernel.now >= end { Turn::Exit(0) } else { Turn::At(end) }
    }
}
