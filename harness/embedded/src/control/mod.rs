//! The control plane beside the API: the scheduler and the controllers.

use std::collections::BTreeMap;

use crate::node::Node;
use crate::world::Ctx;

/// Something that the control plane has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControlEvent {
    /// The scheduler looks at the pods without a node.
    Schedule,
}

/// What the control plane remembers.
#[derive(Default)]
pub struct Control {}

impl Control {
    /// Makes what every cluster has from its beginning: namespaces, priority classes, the service `default/kubernetes` where it is served.
    pub fn start(&mut self, _ctx: &mut Ctx) {}

    /// Objects have changed.
    pub fn changed(&mut self, _ctx: &mut Ctx) {}

    /// Something is due.
    pub fn on(&mut self, _event: ControlEvent, _nodes: &mut BTreeMap<String, Node>, _ctx: &mut Ctx) {}
}
