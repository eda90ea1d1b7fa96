//! What the kubelet tells of its node: the node object, its conditions, its lease.

use super::Kubelet;
use crate::machine::Machine;
use crate::world::Ctx;

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusEvent {
    /// The node's status.
    Update,
    /// The lease.
    Lease,
}

/// What was told last.
#[derive(Clone, Debug, Default)]
pub struct NodeStatus {}

impl Kubelet {
    pub(super) fn status_start(&mut self, _machine: &mut Machine, _ctx: &mut Ctx) {}

    pub(super) fn status_on(&mut self, _event: StatusEvent, _machine: &mut Machine, _ctx: &mut Ctx) {}
}
