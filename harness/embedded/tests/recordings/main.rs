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

/// What chance decides must not decide the account.
const SEEDS: [u64; 3] = [0, 1, 2];

fn main() -> std::process::ExitCode {
    let trials = recording::all()
        .into_iter()
        .map(|recording| {
            Trial::test(recording.name.clone(), move || {
                SEEDS.iter().try_for_each(|seed| held(&recording, *seed))
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn held(recording: &Recording, seed: u64) -> Result<(), Failed> {
    let real = Account::of(&recording.pods_final, &recording.events);
    let replayed = replay::replay(recording, seed);
    let model = Account::of(&replayed.pods, &replayed.events);
    if real == model {
        return Ok(());
    }
    let text = |account: &Account| format!("{account:#?}");
    let difference = similar::TextDiff::from_lines(&text(&real), &text(&model))
        .unified_diff()
        .header("real", "model")
        .to_string();
    Err(format!(
        "seed {seed}\n{difference}\nthe model's messages: {:#?}\nits kubelet's log: {:#?}",
        replayed.messages(),
        replayed.log
    )
    .into())
}
