//! Latencies, measured in recordings of real kubelets.

use std::time::Duration;

use rand::RngExt;

use crate::sim::Rng;

/// Returns a random duration between two numbers of milliseconds.
pub(super) fn between(rng: &mut Rng, least: u64, most: u64) -> Duration {
    Duration::from_micros(rng.random_range(least * 1000..=most * 1000))
}

/// Returns a delay increased by up to `most` percent (`wait.Jitter`).
pub(super) fn jitter(rng: &mut Rng, delay: Duration, most: u64) -> Duration {
    let micros = delay.as_micros() as u64;
    Duration::from_micros(micros + rng.random_range(0..=micros * most / 100))
}
