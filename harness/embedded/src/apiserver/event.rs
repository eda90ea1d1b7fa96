//! Events, as recorders write them.

use serde_json::json;

use crate::context::SimContext;
use crate::resource::{Event, Kind, ObjectExt};

/// Returns whether a namespace accepts new events: it exists and is not being deleted.
pub(crate) fn accepts_events(ctx: &SimContext, namespace: &str) -> bool {
    let namespace = ctx.store.get(Kind::Namespace, "", namespace);
    namespace.is_some_and(|namespace| namespace.phase() != "Terminating")
}

/// Creates an event; returns false if the namespace does not accept events or has one of this name.
pub(crate) fn create_event(ctx: &mut SimContext, event: &Event) -> bool {
    accepts_events(ctx, &event.metadata.namespace)
        && ctx.store.create(Kind::Event, json!(event), ctx.now).is_ok()
}

/// Counts a repetition in the stored event of the same name; returns false if it does not exist.
pub(crate) fn count_event(ctx: &mut SimContext, event: &Event) -> bool {
    let metadata = &event.metadata;
    let write = |stored: &mut serde_json::Value| event.update_repeated(stored);
    ctx.store.update(Kind::Event, &metadata.namespace, &metadata.name, write).is_some()
}
