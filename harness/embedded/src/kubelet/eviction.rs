//! The eviction manager.

use serde_json::Value;

use super::Kubelet;
use crate::machine::{Cgroup, Machine, PodUid};
use crate::time::Time;
use crate::world::Ctx;

/// Something that the eviction manager has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionEvent {
    /// The loop looks.
    Look,
    /// A pod's containers have ended.
    Stopped(PodUid),
}

/// What the eviction manager remembers.
#[derive(Clone, Debug, Default)]
pub struct Eviction {}

impl Kubelet {
    pub(super) fn eviction_start(&mut self, _machine: &mut Machine, _ctx: &mut Ctx) {}

    pub(super) fn eviction_crossed(
        &mut self,
        _group: &Cgroup,
        _mark: u64,
        _at: Time,
        _machine: &mut Machine,
        _ctx: &mut Ctx,
    ) {
    }

    pub(super) fn eviction_on(&mut self, _event: EvictionEvent, _machine: &mut Machine, _ctx: &mut Ctx) {}

    /// Why a pod may not start on a node that has a pressure condition.
    pub fn rejects(&self, _pod: &Value) -> Option<String> {
        None
    }
}
