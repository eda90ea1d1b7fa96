//! Event correlation: aggregation, counting, spam filter (client-go
//! `tools/record/events_cache.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::resource::ObjectExt;
use crate::sim::{Epoch, Time};

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
    New(Value),
    /// Repeated event: name, count and first time are those of the existing event.
    Counted(Value),
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
    last: Time,
}

#[derive(Clone, Debug)]
struct Seen {
    name: Value,
    first: Value,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Time,
}

impl Correlator {
    /// Combines and counts an event, then applies the spam filter.
    ///
    /// With `by_type`, the spam filter treats `Normal` and `Warning` events separately (client-go
    /// since 1.32).
    pub fn correlate(&mut self, mut event: Value, now: Time, epoch: Epoch, by_type: bool) -> Correlation {
        let key = self.combine(&mut event, now, epoch);
        let seen = self.seen.entry(key).or_insert_with(|| Seen {
            name: event["metadata"]["name"].clone(),
            first: event["firstTimestamp"].clone(),
            count: 0,
        });
        seen.count += 1;
        let again = seen.count > 1;
        if again {
            event["metadata"]["name"] = seen.name.clone();
            event["firstTimestamp"] = seen.first.clone();
            event["count"] = json!(seen.count);
        }
        if !self.accept(&event, now, by_type) {
            return Correlation::Dropped;
        }
        if again { Correlation::Counted(event) } else { Correlation::New(event) }
    }

    /// Replaces one of many similar events with the combined event. Returns the key of its count.
    fn combine(&mut self, event: &mut Value, now: Time, epoch: Epoch) -> String {
        let involved = &event["involvedObject"];
        let object = key(involved, &["kind", "namespace", "name", "uid", "apiVersion"]);
        let similar = format!("{object}{}", key(event, &["type", "reason"]));
        let message = event.text("message").to_owned();
        let equal = format!("{similar}{}\n{message}", key(involved, &["fieldPath"]));
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
        event["message"] = json!(format!("(combined from similar events): {message}"));
        event["firstTimestamp"] = json!(epoch.seconds(now));
        if let Some(metadata) = event["metadata"].as_object_mut() {
            metadata.remove("annotations");
        }
        // The combined event has only the old fields.
        event["reportingComponent"] = json!("");
        event["reportingInstance"] = json!("");
        similar
    }

    fn accept(&mut self, event: &Value, now: Time, by_type: bool) -> bool {
        let mut object = key(&event["involvedObject"], &["kind", "namespace", "name", "uid", "apiVersion"]);
        if by_type {
            object += &key(event, &["type"]);
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

fn key(object: &Value, fields: &[&str]) -> String {
    let mut key = String::new();
    for field in fields {
        key.push('\n');
        key.push_str(object.text(field));
    }
    key
}
