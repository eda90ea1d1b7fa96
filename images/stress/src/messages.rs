//! The lines that the program prints on stderr.

use std::time::Duration;

use evictlab_rules::quantity::Quantity;

use crate::command::{AfterHold, ConsumeOptions, Lifetime, OnRefusal};

/// Printed on SIGTERM and SIGINT with `--ignore-term`.
pub const TERM_IGNORED: &str = "ignoring the signal";

impl ConsumeOptions {
    /// Returns a line about progress. `elapsed` is the time since the first step.
    pub fn progress_message(&self, consumed: u64, elapsed: Duration) -> String {
        let total = self.ramp.total.map(|total| format!(" of {}", self.amount(total))).unwrap_or_default();
        self.line(format_args!("{}{total}", self.amount(consumed)), elapsed, "")
    }

    /// Returns the line after the last step.
    pub fn done_message(&self, consumed: u64, elapsed: Duration) -> String {
        let next = format!(", {}", self.lifetime.describe_next());
        self.line(format_args!("all {}", self.amount(consumed)), elapsed, &next)
    }

    /// Returns the line about a refusal by the system.
    pub fn refused_message(&self, consumed: u64, elapsed: Duration, reason: &str) -> String {
        let next = match self.on_refusal {
            OnRefusal::Exit => "exiting".to_owned(),
            OnRefusal::Hold => self.lifetime.describe_next(),
        };
        let end = format!(": {reason}, {next}");
        self.line(format_args!("no more than {}", self.amount(consumed)), elapsed, &end)
    }

    /// Returns the line after the release of the resource.
    pub fn released_message(&self, consumed: u64, elapsed: Duration) -> String {
        self.line(format_args!("released {}", self.amount(consumed)), elapsed, ", staying")
    }

    fn line(&self, amount: std::fmt::Arguments, elapsed: Duration, end: &str) -> String {
        format!("{}: {amount} after {}{end}", self.resource.command(), seconds(elapsed))
    }

    /// Formats an amount of the resource, such as `352Mi`.
    fn amount(&self, amount: u64) -> String {
        match i64::try_from(amount) {
            Ok(bytes) if !self.resource.is_counted() => Quantity::from_bytes(bytes).to_string(),
            _ => amount.to_string(),
        }
    }
}

impl Lifetime {
    /// Describes what happens after the last step.
    fn describe_next(&self) -> String {
        match (self.hold, self.after_hold) {
            (None, _) => "staying".to_owned(),
            (Some(hold), AfterHold::Exit) => format!("exiting in {}", seconds(hold)),
            (Some(hold), AfterHold::Release) => format!("releasing it in {}", seconds(hold)),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, parse};

    fn consume(line: &str) -> ConsumeOptions {
        match parse(line.split_whitespace()) {
            Ok(Command::Consume(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_have_an_amount_and_the_elapsed_time() {
        let elapsed = Duration::from_millis(3140);
        let memory = consume("memory --total 352Mi");
        assert_eq!(memory.progress_message(120 << 20, elapsed), "memory: 120Mi of 352Mi after 3.1s");
        assert_eq!(memory.done_message(352 << 20, elapsed), "memory: all 352Mi after 3.1s, staying");
        let inodes = consume("inodes --step 500");
        assert_eq!(inodes.progress_message(20_000, elapsed), "inodes: 20000 after 3.1s");
        let pids = consume("pids --total 5 --hold 1s --then free");
        assert_eq!(pids.done_message(5, elapsed), "pids: all 5 after 3.1s, releasing it in 1.0s");
        assert_eq!(pids.released_message(5, elapsed), "pids: released 5 after 3.1s, staying");
    }

    #[test]
    fn refusal_message_has_the_reason_and_what_happens_next() {
        let elapsed = Duration::from_millis(3140);
        for (flags, amount, next) in
            [("", (3000, "3000"), "exiting"), ("--on-refusal hold", (4096, "4Ki"), "staying")]
        {
            let disk = consume(&format!("disk --total 1Gi {flags}"));
            assert_eq!(
                disk.refused_message(amount.0, elapsed, "No space"),
                format!("disk: no more than {} after 3.1s: No space, {next}", amount.1)
            );
        }
    }
}
