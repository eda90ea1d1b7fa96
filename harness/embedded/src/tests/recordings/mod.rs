//! Replays recordings of real kubelets: the recorded pods, on a node with the recorded size and
//! configuration, must have the recorded outcome.
//!
//! `EVICTLAB_RECORDINGS` names another folder of recordings.

mod account;
mod files;
mod recording;
mod replay;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use account::Account;
pub(crate) use files::{RULES, read_recordings};
use recording::Recording;

/// Number of seeds of which one must match. The phase of measurements is random, and decides which
/// pods a fast rise of memory finds with outdated statistics.
const SEEDS: u64 = 16;

#[test]
fn recordings_have_the_same_outcome_in_the_model() {
    let recordings = recording::all();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut differences = Vec::new();
        while let Some(recording) = recordings.get(next.fetch_add(1, Ordering::Relaxed)) {
            differences.extend(difference(recording));
        }
        differences
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let differences: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// Returns how the outcome of the first seed differs from the recording; `None` if a seed matches.
fn difference(recording: &Recording) -> Option<String> {
    let first = differs(recording, 0)?;
    let others_differ = (1..SEEDS).all(|seed| differs(recording, seed).is_some());
    others_differ.then(|| format!("{}: {first}", recording.name))
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
