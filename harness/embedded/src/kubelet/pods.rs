//! Pods from their admission to their last status.

use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::pod::Pod;
use serde_json::Value;

use super::Kubelet;
use crate::machine::{ContainerId, Happened, Machine, PodUid};
use crate::time::Time;
use crate::world::Ctx;

/// Something to be done for a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodsEvent {
    /// Its worker looks at it.
    Sync(PodUid),
}

/// A pod that the kubelet knows and that has not fully ended.
#[derive(Clone, Debug)]
pub struct Active {
    /// As the API has it, with the kubelet's status.
    pub object: Arc<Value>,
    /// The same for the rules, with allocated resources.
    pub pod: Pod,
}

/// A container that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name in the pod.
    pub name: String,
    /// What the machine calls it.
    pub id: ContainerId,
    /// Since when.
    pub started: Time,
}

/// Why a pod is killed by the kubelet.
#[derive(Clone, Debug)]
pub struct Eviction {
    /// `status.message`, and that of the condition.
    pub message: String,
    /// Whether the pod gets the condition `DisruptionTarget`.
    pub disruption: bool,
    /// Instead of the pod's own grace period.
    pub grace: Option<Duration>,
}

/// The kubelet's pods.
#[derive(Default)]
pub struct Pods {}

impl Pods {
    /// The pods that the kubelet may evict: known, and neither ended nor only ended by their phase. By uid.
    pub fn active(&self) -> Vec<Active> {
        Vec::new()
    }

    /// The running containers of a pod; of one whose sandbox runs, an empty list while no container does.
    pub fn running(&self, _pod: &str) -> Vec<Running> {
        Vec::new()
    }

    /// Whether a pod's volumes and control groups are gone.
    pub fn is_cleaned_up(&self, _pod: &str) -> bool {
        true
    }
}

impl Kubelet {
    pub(super) fn pods_start(&mut self, _machine: &mut Machine, _ctx: &mut Ctx) {}

    pub(super) fn pods_changed(&mut self, _machine: &mut Machine, _ctx: &mut Ctx) {}

    pub(super) fn pods_happened(&mut self, _happened: Happened, _machine: &mut Machine, _ctx: &mut Ctx) {}

    pub(super) fn pods_on(&mut self, _event: PodsEvent, _machine: &mut Machine, _ctx: &mut Ctx) {}

    /// Begins to kill a pod. When its containers have ended, the eviction manager gets `EvictionEvent::Stopped`.
    pub(super) fn evict(&mut self, _pod: &str, _why: Eviction, _machine: &mut Machine, _ctx: &mut Ctx) {}

    /// Deletes the dead containers (container GC), those of ended pods too.
    pub(super) fn collect_containers(&mut self, _machine: &mut Machine, _ctx: &mut Ctx) {}
}
