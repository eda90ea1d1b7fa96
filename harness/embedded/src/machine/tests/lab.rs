//! A machine with containers, and a clock.

use std::time::Duration;

use crate::machine::{Cgroup, ContainerSpec, LogLine, Machine, MachineEvent, MemoryUse, Mount, SIGTERM};
use crate::options::NodeOptions;
use crate::sim::Rng;
use crate::sim::SimTime;
use evictlab_rules::KubeletVersion;
use rand::SeedableRng;

pub(super) const MIB: u64 = 1 << 20;
pub(super) const KIB: u64 = 1 << 10;

pub(super) struct Lab {
    pub machine: Machine,
    pub rng: Rng,
    pub now: SimTime,
    pub events: Vec<MachineEvent>,
}

pub(super) fn options() -> NodeOptions {
    let version: KubeletVersion = "v1.32.0".parse().unwrap();
    NodeOptions::new("node", version)
}

pub(super) fn spec(pod: &str, command: &[&str]) -> ContainerSpec {
    ContainerSpec {
        pod: pod.to_owned(),
        image: "e2e-test-images/agnhost:2.52".to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ..ContainerSpec::default()
    }
}

pub(super) fn sh(pod: &str, script: &str) -> ContainerSpec {
    spec(pod, &["sh", "-c", script])
}

pub(super) fn mount(path: &str, volume: &str, memory: bool) -> Mount {
    Mount { path: path.to_owned(), volume: volume.to_owned(), memory, ..Mount::default() }
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::of(&options())
    }

    pub(super) fn of(options: &NodeOptions) -> Self {
        let machine = Machine::new(options).unwrap();
        Self { machine, rng: Rng::seed_from_u64(7), now: SimTime::ZERO, events: Vec::new() }
    }

    pub(super) fn start(&mut self, id: &str, spec: ContainerSpec) {
        self.machine.start(id.to_owned(), spec, self.now, &mut self.rng);
    }

    /// Returns a machine with a container `c` of the pod `pod` that runs a script.
    pub(super) fn script(script: &str) -> Self {
        let mut lab = Self::new();
        lab.start("c", sh("pod", script));
        lab
    }

    /// Advances the time as a node does: the machine runs at its own events only.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.machine.next().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.events.extend(self.machine.run(self.now));
        }
        self.now = end;
    }

    pub(super) fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    pub(super) fn term(&mut self, id: &str) {
        self.machine.signal(id, SIGTERM, self.now);
    }

    pub(super) fn memory(&self, id: &str) -> MemoryUse {
        self.machine.memory(&Cgroup::Container(id.to_owned())).unwrap_or_default()
    }

    pub(super) fn pod_memory(&self, uid: &str) -> MemoryUse {
        self.machine.memory(&Cgroup::Pod(uid.to_owned())).unwrap_or_default()
    }

    pub(super) fn processes(&self, id: &str) -> u64 {
        self.machine.processes(&Cgroup::Container(id.to_owned()))
    }

    /// Returns the exit status of a container, whether an OOM kill hit it, and the time.
    pub(super) fn exit(&self, id: &str) -> Option<(i32, bool, SimTime)> {
        self.events.iter().find_map(|event| match event {
            MachineEvent::ContainerExited { container, code, oom, at } if container == id => {
                Some((*code, *oom, *at))
            }
            _ => None,
        })
    }

    pub(super) fn code(&self, id: &str) -> Option<i32> {
        self.exit(id).map(|(code, ..)| code)
    }

    /// Returns the OOM kills: container and process name.
    pub(super) fn killed(&self) -> Vec<(String, String)> {
        let kill = |event: &MachineEvent| match event {
            MachineEvent::OomKilled { process, container, .. } => Some((container.clone(), process.clone())),
            _ => None,
        };
        self.events.iter().filter_map(kill).collect()
    }

    pub(super) fn log(&self, id: &str) -> Vec<String> {
        self.machine.log(id).iter().map(|line: &LogLine| line.text.clone()).collect()
    }
}
