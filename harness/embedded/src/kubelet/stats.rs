//! What the kubelet measures, how old it is when it is used, and the Summary that is made of it.

use serde_json::{Value, json};

use super::Kubelet;
use crate::machine::{Machine, PodUid};
use crate::world::Ctx;

/// A measurement that is due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsEvent {
    /// cAdvisor looks at a group.
    Housekeeping(String),
    /// The volumes of a pod are measured.
    Volumes(PodUid),
}

/// The last measurements.
#[derive(Clone, Debug, Default)]
pub struct Stats {}

impl Kubelet {
    pub(super) fn stats_start(&mut self, _machine: &mut Machine, _ctx: &mut Ctx) {}

    pub(super) fn stats_on(&mut self, _event: StatsEvent, _machine: &mut Machine, _ctx: &mut Ctx) {}

    /// The Summary (`stats/v1alpha1`); `fresh` measures the node and all pods anew, as the eviction manager does.
    pub fn summary(&mut self, _fresh: bool, _machine: &Machine, _ctx: &mut Ctx) -> Result<Value, String> {
        Ok(json!({}))
    }
}
