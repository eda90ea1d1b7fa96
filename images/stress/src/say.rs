//! The lines that the program says.

use std::time::Duration;

use evictlab_rules::quantity::Quantity;

use crate::order::{OnRefusal, Stay, Take, Then};

impl Take {
    /// How far it is, with the time since the first step.
    pub fn progress(&self, taken: u64, since: Duration) -> String {
        let of = self.pace.total.map(|total| format!(" of {}", self.amount(total))).unwrap_or_default();
        format!("{}: {}{of} after {}", self.what.command(), self.amount(taken), seconds(since))
    }

    /// That it has everything, and what comes then.
    pub fn has_all(&self, taken: u64, since: Duration) -> String {
        let after = self.stay.after();
        format!("{}: all {} after {}, {after}", self.what.command(), self.amount(taken), seconds(since))
    }

    /// That the system gives no more, and what comes then.
    pub fn refused(&self, taken: u64, since: Duration, why: &str) -> String {
        let after = match self.on_refusal {
            OnRefusal::Exit => "ending".to_owned(),
            OnRefusal::Hold => self.stay.after(),
        };
        let (command, taken) = (self.what.command(), self.amount(taken));
        format!("{command}: no more than {taken} after {}: {why}, {after}", seconds(since))
    }

    /// That it gave everything back.
    pub fn freed(&self, taken: u64, since: Duration) -> String {
        format!(
            "{}: {} given back after {}, staying",
            self.what.command(),
            self.amount(taken),
            seconds(since)
        )
    }

    /// An amount of what is taken, as a person writes it.
    fn amount(&self, amount: u64) -> String {
        match i64::try_from(amount) {
            Ok(bytes) if !self.what.is_counted() => Quantity::from_bytes(bytes).to_string(),
            _ => amount.to_string(),
        }
    }
}

impl Stay {
    /// What comes when everything is taken.
    fn after(&self) -> String {
        match (self.hold, self.then) {
            (None, _) => "staying".to_owned(),
            (Some(hold), Then::Exit) => format!("ending in {}", seconds(hold)),
            (Some(hold), Then::Free) => format!("giving it back in {}", seconds(hold)),
        }
    }
}

/// What is said instead of stopping.
pub const STAYS: &str = "told to stop: going on";

fn seconds(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Order, read};

    #[test]
    fn what_it_has_is_said_as_a_person_writes_it() {
        let take = |line: &str| match read(line.split_whitespace()) {
            Ok(Order::Take(take)) => take,
            other => panic!("{other:?}"),
        };
        let after = Duration::from_millis(3140);
        let memory = take("memory --total 352Mi");
        assert_eq!(memory.progress(120 << 20, after), "memory: 120Mi of 352Mi after 3.1s");
        assert_eq!(memory.has_all(352 << 20, after), "memory: all 352Mi after 3.1s, staying");
        assert_eq!(take("inodes --step 500").progress(20_000, after), "inodes: 20000 after 3.1s");
        let freed = take("pids --total 5 --hold 1s --then free");
        assert_eq!(freed.has_all(5, after), "pids: all 5 after 3.1s, giving it back in 1.0s");
        assert_eq!(freed.freed(5, after), "pids: 5 given back after 3.1s, staying");
        let full = take("disk --total 1Gi");
        assert_eq!(
            full.refused(3000, after, "No space"),
            "disk: no more than 3000 after 3.1s: No space, ending"
        );
        let full = take("disk --total 1Gi --on-refusal hold");
        assert_eq!(
            full.refused(4096, after, "No space"),
            "disk: no more than 4Ki after 3.1s: No space, staying"
        );
    }
}
