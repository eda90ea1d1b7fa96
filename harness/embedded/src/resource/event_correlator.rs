//! Event correlation: aggregation, counting, spam filter (client-go
//! `tools/record/events_cache.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::event::Event;
use crate::sim;

/// Number of different messages, with the same reason and object, from which they are aggregated.
const MAX_AGGREGATE_EVENTS: usize = 10;
/// Maximum interval between aggregated messages.
const MAX_AGGREGATE_INTERVAL: Duration = Duration::from_secs(600);
/// Burst size of the spam filter, per object.
const BURST: f64 = 25.0;
/// Refill interval of the spam filter.
const REFILL: Duration = Duration::from_secs(300);

/// An event after the correlation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CorrelatedEvent {
    pub(crate) event: Event,
    /// True if name, count and first time are those of an earlier event, which this one repeats.
    pub(crate) is_repeated: bool,
}

/// Caches of the correlation of one component's events. Unlike client-go's, they have no limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Correlator {
    aggregates: BTreeMap<String, AggregateRecord>,
    logs: BTreeMap<String, EventLog>,
    buckets: BTreeMap<String, TokenBucket>,
}

/// Events with the same reason and object.
#[derive(Clone, Debug)]
struct AggregateRecord {
    messages: BTreeSet<String>,
    last: sim::SimTime,
}

/// Earlier occurrences of an event.
#[derive(Clone, Debug)]
struct EventLog {
    name: String,
    first: Option<Time>,
    count: u64,
}

/// Events that the spam filter still accepts.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    left: f64,
    at: sim::SimTime,
}

impl Correlator {
    /// Aggregates and counts an event; `None` if the spam filter drops it.
    ///
    /// With `spam_key_has_type`, the spam filter treats `Normal` and `Warning` events separately
    /// (client-go since 1.32).
    pub(crate) fn correlate(
        &mut self,
        mut event: Event,
        now: sim::SimTime,
        epoch: sim::Epoch,
        spam_key_has_type: bool,
    ) -> Option<CorrelatedEvent> {
        let key = self.aggregate(&mut event, now, epoch);
        let log = self.logs.entry(key).or_insert_with(|| EventLog {
            name: event.metadata.name.clone(),
            first: event.first_timestamp.clone(),
            count: 0,
        });
        log.count += 1;
        let is_repeated = log.count > 1;
        if is_repeated {
            event.metadata.name = log.name.clone();
            event.first_timestamp = log.first.clone();
            event.count = Some(log.count);
        }
        let is_accepted = self.accept(&event, now, spam_key_has_type);
        is_accepted.then_some(CorrelatedEvent { event, is_repeated })
    }

    /// Replaces one of many similar events with the aggregated event. Returns the key of its log.
    fn aggregate(&mut self, event: &mut Event, now: sim::SimTime, epoch: sim::Epoch) -> String {
        let Event { involved_object, event_type, reason, message, .. } = &*event;
        let similar = format!("{}\n{event_type}\n{reason}", object_key(involved_object));
        let path = involved_object.field_path.as_deref().unwrap_or_default();
        let equal = format!("{similar}\n{path}\n{message}");
        let record = self
            .aggregates
            .entry(similar.clone())
            .or_insert_with(|| AggregateRecord { messages: BTreeSet::new(), last: now });
        if now.since(record.last) > MAX_AGGREGATE_INTERVAL {
            record.messages.clear();
        }
        record.messages.insert(message.clone());
        record.last = now;
        if record.messages.len() < MAX_AGGREGATE_EVENTS {
            return equal;
        }
        record.messages.pop_first();
        event.message = format!("(combined from similar events): {message}");
        event.first_timestamp = Some(epoch.meta_time(now));
        event.metadata.annotations = None;
        // The aggregated event has only the old fields.
        event.reporting_component = String::new();
        event.reporting_instance = String::new();
        similar
    }

    fn accept(&mut self, event: &Event, now: sim::SimTime, spam_key_has_type: bool) -> bool {
        let mut object = object_key(&event.involved_object);
        if spam_key_has_type {
            object = object + "\n" + event.event_type;
        }
        let bucket = self.buckets.entry(object).or_insert(TokenBucket { left: BURST, at: now });
        let refilled = now.since(bucket.at).as_secs_f64() / REFILL.as_secs_f64();
        *bucket = TokenBucket { left: (bucket.left + refilled).min(BURST), at: now };
        let accepted = bucket.left >= 1.0;
        if accepted {
            bucket.left -= 1.0;
        }
        accepted
    }
}

/// Returns the fields that identify an object, a line each.
fn object_key(object: &ObjectReference) -> String {
    let fields = [&object.kind, &object.namespace, &object.name, &object.uid, &object.api_version];
    fields.map(|field| field.as_deref().unwrap_or_default()).join("\n")
}
