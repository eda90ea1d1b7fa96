//! Changes of objects.

use std::sync::Arc;

use serde_json::Value;

use crate::resource::Kind;

/// Type of a change, as in watch events (`watch.EventType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchEventType {
    /// The object was created.
    Added,
    /// The object was updated.
    Modified,
    /// The object was removed.
    Deleted,
}

/// Change of an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectChange {
    /// Version of the store after the change.
    pub version: u64,
    /// Type of the change.
    pub event_type: WatchEventType,
    /// Kind of the object.
    pub kind: Kind,
    /// State after the change. For a removed object: the last state, with the version of the
    /// removal.
    pub object: Arc<Value>,
    /// State before the change, if the object existed.
    pub before: Option<Arc<Value>>,
}
