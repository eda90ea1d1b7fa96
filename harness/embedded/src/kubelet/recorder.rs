//! Events: told to the API server, counted up, combined, lost.

use serde_json::Value;

use super::Kubelet;
use crate::world::Ctx;

/// An event on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecorderEvent {
    /// The event of this number is sent.
    Send(u64),
}

/// What an event is about.
#[derive(Clone, Debug)]
pub enum About<'a> {
    /// The node itself.
    Node,
    /// A pod, or a part of it such as `spec.containers{el1}`.
    Pod(&'a Value, Option<String>),
}

/// What the kubelet has told.
#[derive(Clone, Debug, Default)]
pub struct Recorder {}

impl Kubelet {
    /// Tells an event. `kind` is `Normal` or `Warning`.
    pub fn tell(
        &mut self,
        _about: About,
        _kind: &str,
        _reason: &str,
        _message: &str,
        _annotations: Option<Value>,
        _ctx: &mut Ctx,
    ) {
    }

    pub(super) fn recorder_on(&mut self, _event: RecorderEvent, _ctx: &mut Ctx) {}
}
