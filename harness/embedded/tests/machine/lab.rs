//! A machine with some containers.

use std::time::Duration;

use evictlab_embedded::machine::{
    Cgroup, ContainerSpec, Happened, LogLine, Machine, MemoryUse, Mount, Signal,
};
use evictlab_embedded::options::NodeOptions;
use evictlab_embedded::time::Time;
use evictlab_embedded::world::Rng;
use evictlab_rules::KubeletVersion;
use rand::SeedableRng;

pub const MIB: u64 = 1 << 20;
pub const KIB: u64 = 1 << 10;

pub struct Lab {
    pub machine: Machine,
    pub rng: Rng,
    pub now: Time,
    pub happened: Vec<Happened>,
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
        Self { machine, rng: Rng::seed_from_u64(7), now: Time::ZERO, happened: Vec::new() }
    }

    pub fn start(&mut self, id: &str, spec: ContainerSpec) {
        self.machine.start(id.to_owned(), spec, self.now, &mut self.rng);
    }

    /// A container `c` of a pod `pod` that runs a script.
    pub fn script(script: &str) -> Self {
        let mut lab = Self::new();
        lab.start("c", sh("pod", script));
        lab
    }

    /// Lets time go by, as a node does: each moment at which something is due, and no other.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.machine.next().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.happened.extend(self.machine.run(self.now, &mut self.rng));
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

    /// How a container ended.
    pub fn exit(&self, id: &str) -> Option<(i32, bool, Time)> {
        self.happened.iter().find_map(|happened| match happened {
            Happened::Exited { container, code, oom, at } if container == id => Some((*code, *oom, *at)),
            _ => None,
        })
    }

    pub fn code(&self, id: &str) -> Option<i32> {
        self.exit(id).map(|(code, ..)| code)
    }

    /// The names of processes that were killed for want of memory.
    pub fn killed(&self) -> Vec<(String, String)> {
        let of = |happened: &Happened| match happened {
            Happened::OomKilled { process, container, .. } => Some((container.clone(), process.clone())),
            _ => None,
        };
        self.happened.iter().filter_map(of).collect()
    }

    pub fn log(&self, id: &str) -> Vec<String> {
        self.machine.log(id).iter().map(|line: &LogLine| line.text.clone()).collect()
    }
}
