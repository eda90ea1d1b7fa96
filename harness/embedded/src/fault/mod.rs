//! What goes wrong, and when: a small script.

use std::collections::BTreeMap;

use crate::node::Node;
use crate::world::Ctx;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {}

/// The script, and where it stands.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The script.
    pub script: Vec<Fault>,
}

impl Faults {
    /// A script at its beginning.
    pub fn new(script: Vec<Fault>) -> Self {
        Self { script }
    }
}

/// A fault strikes.
pub fn strike(_at: usize, _nodes: &mut BTreeMap<String, Node>, _ctx: &mut Ctx) {}
