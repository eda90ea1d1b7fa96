//! Which events are combined, counted or held back (client-go `tools/record/events_cache.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::time::{Epoch, Time};

/// So many different messages of one reason about one object are combined from then on.
const COMBINED_FROM: usize = 10;
/// Messages further apart than this are not combined.
const COMBINED_WITHIN: Duration = Duration::from_secs(600);
/// So many events about an object may be sent at once.
const BURST: f64 = 25.0;
/// After those, one more in such a time.
const REFILL: Duration = Duration::from_secs(300);

/// What becomes of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// There have been too many about its object.
    Dropped,
    /// It is created.
    New(Value),
    /// It was told before: name, count and first time are those of the event that exists.
    Counted(Value),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Correlator {
    groups: BTreeMap<String, Group>,
    seen: BTreeMap<String, Seen>,
    buckets: BTreeMap<String, Bucket>,
}

/// Events of one reason about one object.
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
    /// Combines, counts, holds back, in this order: what is held back was counted.
    ///
    /// `by_type`: Normal and Warning events about an object are held back apart (client-go since 1.32).
    pub fn correlate(&mut self, mut event: Value, now: Time, epoch: Epoch, by_type: bool) -> Fate {
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
            return Fate::Dropped;
        }
        if again { Fate::Counted(event) } else { Fate::New(event) }
    }

    /// Turns an event that is one of too many similar ones into their common one. The answer is the key under which it is counted.
    fn combine(&mut self, event: &mut Value, now: Time, epoch: Epoch) -> String {
        let involved = &event["involvedObject"];
        let object = key(involved, &["kind", "namespace", "name", "uid", "apiVersion"]);
        let similar = format!("{object}{}", key(event, &["type", "reason"]));
        let message = event["message"].as_str().unwrap_or_default().to_owned();
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
        // The combined event is made anew with the old fields only.
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
        key.push_str(object[*field].as_str().unwrap_or_default());
    }
    key
}
