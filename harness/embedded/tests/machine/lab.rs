//! A machine with containers, and a clock.

use std::time::Duration;

use evictlab_embedded::machine::{
    Cgroup, ContainerSpec, LogLine, Machine, MachineEvent, MemoryUse, Mount, Signal,
};
use evictlab_embedded::options::NodeOptions;
use evictlab_embedded::sim::Rng;
use evictlab_embedded::sim::Time;
use evictlab_rules::KubeletVersion;
use rand::SeedableRng;

pub const MIB: u64 = 1 << 20;
pub const KIB: u64 = 1 << 10;

pub struct Lab {
    pub machine: Machine,
    pub rng: Rng,
    pub now: Time,
    pub events: Vec<MachineEvent>,
}

pub fn options() -> NodeOptions {
    let version: KubeletVersion = "v1.32.0".parse().unwrap();
    NodeOptions::new("node", version)
}

pub fn spec(pod: &str, command: &[&str]) -> ContainerSpec {
    ContainerSpec {
        pod: pod.to_owned(),
        image: "e2e-test-images/agnhost:2.52".to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ..ContainerSpec::default()
    }
}

pub fn sh(pod: &str, script: &str) -> ContainerSpec {
    spec(pod, &["sh", "-c", script])
}

pub fn mount(path: &str, volume: &str, memory: bool) -> Mount {
    Mount { path: path.to_owned(), volume: volume.to_owned(), memory, ..Mount::default() }
}

impl Lab {
    pub fn new() -> Self {
        Self::of(&options())
    }

    pub fn of(options: &NodeOptions) -> Self {
        let machine = Machine::new(options).unwrap();
        Self { machine, rng: Rng::seed_from_u64(7), now: Time::ZERO, events: Vec::new() }
    }

    pub fn start(&mut self, id: &str, spec: ContainerSpec) {
        self.machine.start(id.to_owned(), spec, self.now, &mut self.rng);
    }

    /// Returns a machine with a container `c` of the pod `pod` that runs a script.
    pub fn script(script: &str) -> Self {
        let mut lab = Self::new();
        lab.start("c", sh("pod", script));
        lab
    }

    /// Advances the time as a node does: the machine runs at its own events only.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.machine.next().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.events.extend(self.machine.run(self.now));
        }
        self.now = end;
    }

    pub fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    pub fn term(&mut self, id: &str) {
        self.machine.signal(id, Signal::Term, self.now);
    }

    pub fn memory(&self, id: &str) -> MemoryUse {
        self.machine.memory(&Cgroup::Container(id.to_owned())).unwrap_or_default()
    }

    pub fn pod_memory(&self, uid: &str) -> MemoryUse {
        self.machine.memory(&Cgroup::Pod(uid.to_owned())).unwrap_or_default()
    }

    pub fn processes(&self, id: &str) -> u64 {
        self.machine.processes(&Cgroup::Container(id.to_owned()))
    }

    /// Returns the exit status of a container, whether an OOM kill hit it, and the time.
    pub fn exit(&self, id: &str) -> Option<(i32, bool, Time)> {
        self.events.iter().find_map(|event| match event {
            MachineEvent::ContainerExited { container, code, oom, at } if container == id => {
                Some((*code, *oom, *at))
            }
            _ => None,
        })
    }

    pub fn code(&self, id: &str) -> Option<i32> {
        self.exit(id).map(|(code, ..)| code)
    }

    /// Returns the OOM kills: container and process name.
    pub fn killed(&self) -> Vec<(String, String)> {
        let kill = |event: &MachineEvent| match event {
            MachineEvent::OomKilled { process, container, .. } => Some((container.clone(), process.clone())),
            _ => None,
        };
        self.events.iter().filter_map(kill).collect()
    }

    pub fn log(&self, id: &str) -> Vec<String> {
        self.machine.log(id).iter().map(|line: &LogLine| line.text.clone()).collect()
    }
}
