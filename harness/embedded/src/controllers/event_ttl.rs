//! Expiry of events (`--event-ttl` of kube-apiserver).

use std::time::Duration;

use serde_json::Value;

use super::context::{ControllerContext, ControllerTask};
use crate::resource::{Kind, ObjectExt};
use crate::sim::SimTime;

/// Period of checks. etcd's leases are exact, but shorter periods make no visible difference.
const CLEANUP_PERIOD: Duration = Duration::from_secs(60);

/// Schedules the first check.
pub(super) fn start(ctx: &mut ControllerContext) {
    ctx.schedule_after(CLEANUP_PERIOD, ControllerTask::DeleteOldEvents);
}

/// Removes events whose last occurrence is older than `ttl`.
pub(super) fn check(ttl: Duration, ctx: &mut ControllerContext) {
    if let Some(limit) = ctx.now.since_start().checked_sub(ttl) {
        // Times of equal format sort as strings.
        let limit = ctx.epoch().rfc3339_seconds(SimTime::from_start(limit));
        let old = ctx.store.list(Kind::Event, None).filter(|event| last_time(event) < limit.as_str());
        let old: Vec<_> = old.map(|event| (event.namespace().to_owned(), event.name().to_owned())).collect();
        for (namespace, name) in old {
            ctx.store.remove(Kind::Event, &namespace, &name);
        }
    }
    ctx.schedule_after(CLEANUP_PERIOD, ControllerTask::DeleteOldEvents);
}

/// Returns the last time of an event, such as `2026-01-01T00:00:00Z`, with or without a fraction.
fn last_time(event: &Value) -> &str {
    let times = [
        event.text("lastTimestamp"),
        event["series"].text("lastObservedTime"),
        event.text("eventTime"),
        event.metadata().text("creationTimestamp"),
    ];
    times.into_iter().find(|time| !time.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::tests::TestCluster;

    #[test]
    fn events_expire_an_hour_after_last_occurrence() {
        let mut cluster = TestCluster::new();
        let mut record = |name: &str, field: &str, at: &str| {
            let event = json!({"metadata": {"namespace": "default", "name": name}, field: at});
            cluster.0.store.create(Kind::Event, event, SimTime::ZERO).unwrap();
        };
        record("old", "lastTimestamp", "2026-01-01T00:00:30Z");
        record("old-micro", "eventTime", "2026-01-01T00:00:30.000001Z");
        record("repeated", "lastTimestamp", "2026-01-01T00:30:00Z");
        let mut remaining = |minutes: u64| {
            cluster.0.run(SimTime::from_start(Duration::from_secs(minutes * 60 + 1)));
            let events = cluster.0.store.list(Kind::Event, Some("default"));
            events.map(|event| event.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(remaining(60), ["old", "old-micro", "repeated"]);
        assert_eq!(remaining(61), ["repeated"]);
        assert!(remaining(91).is_empty());
    }
}
