use std::collections::BTreeMap;

use super::eviction::{EvictionEvent, Forecast};

/// Numbers of evictions since the start of a watch.
#[derive(Debug, Default)]
pub(super) struct EvictionCounters {
    /// By node and cause.
    pub(super) evictions: BTreeMap<(String, &'static str), u64>,
    pub(super) forecasts: BTreeMap<Forecast, u64>,
}

impl EvictionCounters {
    pub(super) fn add(&mut self, node: &str, eviction: &EvictionEvent, forecast: Forecast) {
        *self.evictions.entry((node.to_owned(), eviction.cause())).or_default() += 1;
        *self.forecasts.entry(forecast).or_default() += 1;
    }
}
