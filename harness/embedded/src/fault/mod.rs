//! What goes wrong, and when: a small script.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, Uri};

use crate::node::Node;
use crate::registry::Status;
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

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is answered.
    Pass,
    /// It is refused, and nothing is done.
    Refuse(Status),
    /// It is answered later.
    Delay(Duration),
    /// It is answered, and the answer ends after a time: a watch that is cut.
    Cut(Duration),
}

/// Judges a request to the API as it arrives; its path and parameters are in its address.
pub fn judge(_method: &Method, _uri: &Uri, _ctx: &mut Ctx) -> Verdict {
    Verdict::Pass
}
