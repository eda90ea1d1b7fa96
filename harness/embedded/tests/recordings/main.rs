//! The model held to what real kubelets answered: each recording's pods, on a node like the recorded one with the recorded
//! configuration, must come to the same end.
//!
//! `EVICTLAB_RECORDINGS` names another folder of recordings than the project's own.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod account;
mod recording;
mod replay;

use libtest_mimic::{Arguments, Failed, Trial};

use account::Account;
use recording::Recording;

/// When a kubelet measures what is chance, and with it whom a quick rise of memory finds with old figures. A recording is one throw; the
/// model has so many to come to the same.
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

/// How the model's account differs from the recording's.
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
