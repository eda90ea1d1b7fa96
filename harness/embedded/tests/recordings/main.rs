//! Replays recordings of real kubelets: the recorded pods, on a node with the recorded size and
//! configuration, must have the recorded outcome.
//!
//! `EVICTLAB_RECORDINGS` names another folder of recordings.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod account;
mod recording;
mod replay;

use libtest_mimic::{Arguments, Failed, Trial};

use account::Account;
use recording::Recording;

/// Number of seeds of which one must match. The phase of measurements is random, and decides which
/// pods a fast rise of memory finds with outdated statistics.
const SEEDS: u64 = 16;

fn main() -> std::process::ExitCode {
    let trial = |recording: Recording| Trial::test(recording.name.clone(), move || held(&recording));
    let trials = recording::all().into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn held(recording: &Recording) -> Result<(), Failed> {
    let mut first = None;
    for seed in 0..SEEDS {
        match differs(recording, seed) {
            None => return Ok(()),
            Some(how) => first = first.or(Some(how)),
        }
    }
    Err(first.unwrap_or_default().into())
}

/// Returns how the outcome of the model differs from the recording.
fn differs(recording: &Recording, seed: u64) -> Option<String> {
    let replayed = replay::replay(recording, seed);
    let mut real = Account::of(&recording.pods_final, &recording.events);
    let mut model = Account::of(&replayed.pods, &replayed.events);
    real.level(&mut model);
    if real == model {
        return None;
    }
    let text = |account: &Account| format!("{account:#?}");
    let (real, model) = (text(&real), text(&model));
    let difference =
        similar::TextDiff::from_lines(&real, &model).unified_diff().header("real", "model").to_string();
    Some(format!(
        "seed {seed}\n{difference}\nthe model's messages: {:#?}\nits kubelet's log: {:#?}",
        replayed.messages(),
        replayed.log
    ))
}
