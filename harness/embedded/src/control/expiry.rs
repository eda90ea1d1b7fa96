//! Events are kept for a while (`--event-ttl` of kube-apiserver): the store forgets them then.

use std::time::Duration;

use serde_json::Value;

use super::{ControlEvent, after, meta};
use crate::store::Kind;
use crate::time::Time;
use crate::world::Ctx;

/// How often it is looked: etcd's leases are exact, but nobody can tell by less than a minute.
const PERIOD: Duration = Duration::from_secs(60);

/// Begins to look.
pub(super) fn start(ctx: &mut Ctx) {
    after(ctx, PERIOD, ControlEvent::Expiry);
}

/// Forgets what was last told longer ago than `ttl`.
pub(super) fn look(ttl: Duration, ctx: &mut Ctx) {
    if let Some(limit) = ctx.now.since_start().checked_sub(ttl) {
        // Texts of one form are in the order of their times.
        let limit = ctx.epoch().seconds(Time::after(limit));
        let old = ctx.store.list(Kind::Event, None).filter(|event| last_told(event) < limit.as_str());
        let old: Vec<_> =
            old.map(|event| (meta(event, "namespace").to_owned(), meta(event, "name").to_owned())).collect();
        for (namespace, name) in old {
            ctx.store.remove(Kind::Event, &namespace, &name);
        }
    }
    after(ctx, PERIOD, ControlEvent::Expiry);
}

/// The time of an event, `2026-01-01T00:00:00Z` or with parts of a second.
fn last_told(event: &Value) -> &str {
    let times = [&event["lastTimestamp"], &event["series"]["lastObservedTime"], &event["eventTime"]];
    let told = times.into_iter().find_map(Value::as_str);
    told.or(event["metadata"]["creationTimestamp"].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::control::tests::Bench;

    #[test]
    fn events_are_forgotten_an_hour_after_they_were_last_told() {
        let mut bench = Bench::new();
        let mut tell = |name: &str, field: &str, at: &str| {
            let event = json!({"metadata": {"namespace": "default", "name": name}, field: at});
            bench.0.store.create(Kind::Event, event, Time::ZERO).unwrap();
        };
        tell("old", "lastTimestamp", "2026-01-01T00:00:30Z");
        tell("old-micro", "eventTime", "2026-01-01T00:00:30.000001Z");
        tell("told-again", "lastTimestamp", "2026-01-01T00:30:00Z");
        let mut there = |minutes: u64| {
            bench.0.run(Time::after(Duration::from_secs(minutes * 60 + 1)));
            let events = bench.0.store.list(Kind::Event, Some("default"));
            events.map(|event| meta(event, "name").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(there(60), ["old", "old-micro", "told-again"]);
        assert_eq!(there(61), ["told-again"]);
        assert!(there(91).is_empty());
    }
}
