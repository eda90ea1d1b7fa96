//! State of a kubelet, its queue and its log.

use std::fmt::Display;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use super::config::{Housekeeping, KubeletConfig};
use super::event::{KubeletEvent, PodEvent};
use super::eviction::Eviction;
use super::log::{Level, Log};
use super::pods::Pods;
use super::recorder::Recorder;
use super::stats::Stats;
use super::status::NodeStatusUpdates;
use crate::context::SimContext;
use crate::defect::Defect;
use crate::options::NodeOptions;
use crate::resource::ObjectExt;
use crate::sim::{EventQueue, SimTime, Slot};

/// A kubelet. Its components are fields; the operations of a component are in the component's
/// folder.
pub struct Kubelet {
    /// Options of the node, with the version of the kubelet.
    pub(crate) options: NodeOptions,
    /// Process ID, which grows with each restart.
    pub(super) pid: u64,
    /// Configuration.
    pub(crate) config: KubeletConfig,
    /// True if the process runs. Events of a stopped kubelet are ignored.
    pub(crate) running: bool,
    /// Time of the last start.
    pub(crate) started: SimTime,
    /// Log.
    pub(crate) log: Log,
    /// Recorder of events.
    pub(crate) recorder: Recorder,
    /// Pods.
    pub(crate) pods: Pods,
    /// Measurements.
    pub(crate) stats: Stats,
    /// Eviction manager.
    pub(crate) eviction: Eviction,
    /// Node status.
    pub(crate) status: NodeStatusUpdates,
    pub(super) queue: EventQueue<KubeletEvent>,
}

impl Kubelet {
    /// Returns whether the kubelet has a defect.
    pub(super) fn has(&self, defect: Defect) -> bool {
        self.options.defects.has(defect)
    }

    /// Returns whether the process runs.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Returns the interval at which cAdvisor measures containers.
    pub fn housekeeping(&self) -> Housekeeping {
        self.config.housekeeping
    }

    /// Returns the log lines since a time.
    pub fn log_since(&self, from: SimTime) -> impl DoubleEndedIterator<Item = &str> {
        self.log.since(from)
    }

    /// Loads an image into the runtime, as `ctr images import` does.
    pub fn load_image(&mut self, image: &str) {
        self.status.images.load(image);
    }

    /// Adds an image of a size in bytes to the runtime, unless the node has it.
    pub fn add_image(&mut self, image: &str, bytes: u64) {
        self.status.images.add(image, bytes);
    }

    /// Removes the images whose names have a prefix, which no container uses, from the runtime, as
    /// `ctr images rm` does.
    pub fn remove_images(&mut self, prefix: &str) {
        self.status.images.remove_with_prefix(prefix);
    }

    /// Returns a reference to the kubelet's node.
    pub(super) fn as_owner(&self, node: &Value) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.options.name.clone(),
            uid: node.uid().to_owned(),
            ..OwnerReference::default()
        }
    }

    /// Returns the slot of the next event.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.queue.next()
    }

    /// Schedules a start of the kubelet.
    pub(crate) fn schedule_start(&mut self, at: SimTime, ctx: &mut SimContext) {
        self.schedule(at, KubeletEvent::Start, ctx);
    }

    pub(super) fn schedule(&mut self, at: SimTime, event: KubeletEvent, ctx: &mut SimContext) {
        self.queue.schedule(at, event, ctx.sequence);
    }

    pub(super) fn schedule_pod(&mut self, at: SimTime, event: PodEvent, ctx: &mut SimContext) {
        self.schedule(at, KubeletEvent::Pods(event), ctx);
    }

    /// Writes a log line. `source` is the position such as `eviction_manager.go:186`; `pairs` are
    /// key-value pairs in klog's format (`resourceName="memory"`).
    pub(super) fn write_log(
        &mut self,
        level: Level,
        source: impl Display,
        message: &str,
        pairs: &str,
        ctx: &SimContext,
    ) {
        let letter = match level {
            Level::Info => 'I',
            Level::Error => 'E',
        };
        let time = ctx.epoch().at(ctx.now).strftime("%m%d %H:%M:%S%.6f").to_string();
        let pid = self.pid;
        let space = if pairs.is_empty() { "" } else { " " };
        self.log.add(ctx.now, format!("{letter}{time} {pid:7} {source}] {message:?}{space}{pairs}"));
    }
}
