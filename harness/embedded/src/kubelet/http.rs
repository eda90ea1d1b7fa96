//! What the kubelet answers on its port, as `nodes/N/proxy` reaches it.

use super::Kubelet;
use crate::machine::Machine;
use crate::world::Ctx;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// `Content-Type`.
    pub content: &'static str,
    /// The body.
    pub body: String,
}

impl Kubelet {
    /// Answers a GET of a path below the proxy, such as `stats/summary`, with its query.
    pub fn answer(&mut self, path: &str, _query: &str, _machine: &Machine, _ctx: &mut Ctx) -> Answer {
        Answer { code: 404, content: "text/plain", body: format!("404 page not found: {path}") }
    }
}
