//! Event correlation: aggregation, counting, spam filter (client-go
//! `tools/record/events_cache.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::resource::Event;
use crate::sim;

/// Number of different messages, with the same reason and object, from which events are combined.
const COMBINED_FROM: usize = 10;
/// Maximum interval between combined messages.
const COMBINED_WITHIN: Duration = Duration::from_secs(600);
/// Burst size of the spam filter, per object.
const BURST: f64 = 25.0;
/// Refill interval of the spam filter.
const REFILL: Duration = Duration::from_secs(300);

/// Result of the correlation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Correlation {
    /// Dropped by the spam filter.
    Dropped,
    /// New event.
    New(Event),
    /// Repeated event: name, count and first time are those of the existing event.
    Counted(Event),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Correlator {
    groups: BTreeMap<String, Group>,
    seen: BTreeMap<String, Seen>,
    buckets: BTreeMap<String, Bucket>,
}

/// Events with the same reason and object.
#[derive(Clone, Debug)]
struct Group {
    messages: BTreeSet<String>,
    last: sim::Time,
}

#[derive(Clone, Debug)]
struct Seen {
    name: String,
    first: Option<Time>,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: sim::Time,
}

impl Correlator {
    /// Combines and counts an event, then applies the spam filter.
    ///
    /// With `by_type`, the spam filter treats `Normal` and `Warning` events separately (client-go
    /// since 1.32).
    pub(super) fn correlate(
        &mut self,
        mut event: Event,
        now: sim::Time,
        epoch: sim::Epoch,
        by_type: bool,
    ) -> Correlation {
        let key = self.combine(&mut event, now, epoch);
        let seen = self.seen.entry(key).or_insert_with(|| Seen {
            name: event.metadata.name.clone(),
            first: event.first_timestamp.clone(),
            count: 0,
        });
        seen.count += 1;
        let again = seen.count > 1;
        if again {
            event.metadata.name = seen.name.clone();
            event.first_timestamp = seen.first.clone();
            event.count = Some(seen.count);
        }
        if !self.accept(&event, now, by_type) {
            return Correlation::Dropped;
        }
        if again { Correlation::Counted(event) } else { Correlation::New(event) }
    }

    /// Replaces one of many similar events with the combined event. Returns the key of its count.
    fn combine(&mut self, event: &mut Event, now: sim::Time, epoch: sim::Epoch) -> String {
        let Event { involved_object, event_type, reason, message, .. } = &*event;
        let similar = format!("{}\n{event_type}\n{reason}", object_key(involved_object));
        let path = involved_object.field_path.as_deref().unwrap_or_default();
        let equal = format!("{similar}\n{path}\n{message}");
        let group = self
            .groups
            .entry(similar.clone())
            .or_insert_with(|| Group { messages: BTreeSet::new(), last: now });
        if now.since(group.last) > COMBINED_WITHIN {
            group.messages.clear();
        }
        group.messages.insert(message.clone());
        group.last = now;
        if group.messages.len() < COMBINED_FROM {
            return equal;
        }
        group.messages.pop_first();
        event.message = format!("(combined from similar events): {message}");
        event.first_timestamp = Some(epoch.meta_time(now));
        event.metadata.annotations = None;
        // The combined event has only the old fields.
        event.reporting_component = String::new();
        event.reporting_instance = String::new();
        similar
    }

    fn accept(&mut self, event: &Event, now: sim::Time, by_type: bool) -> bool {
        let mut object = object_key(&event.involved_object);
        if by_type {
            object = object + "\n" + event.event_type;
        }
        let bucket = self.buckets.entry(object).or_insert(Bucket { left: BURST, at: now });
        let refilled = now.since(bucket.at).as_secs_f64() / REFILL.as_secs_f64();
        *bucket = Bucket { left: (bucket.left + refilled).min(BURST), at: now };
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
