//! A kubelet of a stated version: what it does with pods, what it measures, whom it evicts, what it tells.

pub mod config;
pub mod eviction;
pub mod http;
pub mod log;
pub mod pods;
pub mod recorder;
pub mod stats;
pub mod status;

use evictlab_rules::KubeletVersion;

use crate::machine::{Happened, Machine};
use crate::options::{CgroupVersion, NodeOptions, OptionsError};
use crate::world::Ctx;

/// Something that a kubelet has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeletEvent {
    /// The process begins.
    Start,
    /// For a pod.
    Pods(pods::PodsEvent),
    /// A measurement.
    Stats(stats::StatsEvent),
    /// By the eviction manager.
    Eviction(eviction::EvictionEvent),
    /// By the node status loop.
    Status(status::StatusEvent),
    /// An event is to be sent.
    Recorder(recorder::RecorderEvent),
}

/// What all parts of a kubelet know of it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The node's name.
    pub node: String,
    /// The node's options.
    pub options: NodeOptions,
    /// What it reports.
    pub version: KubeletVersion,
    /// The kernel's control groups.
    pub cgroup: CgroupVersion,
    /// The process's number: it grows with each restart.
    pub pid: u64,
}

/// A kubelet. Its parts are fields, so that one can work with another.
pub struct Kubelet {
    /// Who it is.
    pub identity: Identity,
    /// What it runs with.
    pub config: config::Config,
    /// Whether the process runs. What is due for one that does not is left undone.
    pub running: bool,
    /// What it logs.
    pub log: log::Log,
    /// What it tells as events.
    pub recorder: recorder::Recorder,
    /// Its pods.
    pub pods: pods::Pods,
    /// What it has measured.
    pub stats: stats::Stats,
    /// Whom it evicts.
    pub eviction: eviction::Eviction,
    /// What it tells of its node.
    pub status: status::NodeStatus,
}

impl Kubelet {
    /// A kubelet that does not run.
    pub fn new(options: &NodeOptions) -> Result<Self, OptionsError> {
        let identity = Identity {
            node: options.name.clone(),
            options: options.clone(),
            version: options.version.clone(),
            cgroup: options.cgroup,
            pid: 1000,
        };
        Ok(Self {
            config: config::Config::new(&identity),
            running: false,
            log: log::Log::default(),
            recorder: recorder::Recorder::default(),
            pods: pods::Pods::default(),
            stats: stats::Stats::default(),
            eviction: eviction::Eviction::default(),
            status: status::NodeStatus::new(&identity),
            identity,
        })
    }

    /// Begins, unless it refuses its configuration. Pods that run are found as they are; all else that it had in memory is gone.
    pub fn start(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        self.running = true;
        self.identity.pid += 7;
        self.recorder = recorder::Recorder::default();
        self.stats = stats::Stats::default();
        self.eviction = eviction::Eviction::default();
        if !self.config_start(ctx) {
            return;
        }
        self.status_start(machine, ctx);
        self.pods_start(machine, ctx);
        self.stats_start(machine, ctx);
        self.eviction_start(machine, ctx);
    }

    /// Ends, as by SIGTERM; pods run on.
    pub fn stop(&mut self) {
        self.running = false;
    }

    /// Objects have changed.
    pub fn changed(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        if self.running {
            self.pods_changed(machine, ctx);
        }
    }

    /// The machine did something.
    pub fn happened(&mut self, happened: Happened, machine: &mut Machine, ctx: &mut Ctx) {
        match happened {
            Happened::Crossed { group, mark, at } => {
                if self.running {
                    self.eviction_crossed(&group, mark, at, machine, ctx);
                }
            }
            happened => self.pods_happened(happened, machine, ctx),
        }
    }

    /// Something is due.
    pub fn on(&mut self, event: KubeletEvent, machine: &mut Machine, ctx: &mut Ctx) {
        match event {
            KubeletEvent::Start => self.start(machine, ctx),
            _ if !self.running => {}
            KubeletEvent::Pods(event) => self.pods_on(event, machine, ctx),
            KubeletEvent::Stats(event) => self.stats_on(event, machine, ctx),
            KubeletEvent::Eviction(event) => self.eviction_on(event, machine, ctx),
            KubeletEvent::Status(event) => self.status_on(event, machine, ctx),
            KubeletEvent::Recorder(event) => self.recorder_on(event, ctx),
        }
    }
}
