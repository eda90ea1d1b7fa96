//! The sequence of actions of a soak: a function of its seed.

use std::fmt;
use std::time::Duration;

use rustix::process::Signal;

/// Cases that run on an existing cluster without permission for pressure.
const SHARED_CLUSTER_CASES: [&str; 7] = [
    "message/ephemeral-resources-are-refused",
    "relatives/graceful-delete",
    "relatives/api-eviction",
    "relatives/drain",
    "limits/emptydir-size",
    "limits/container-own",
    "limits/pod-total",
];

/// Suites whose evidence comes from the kubelet only: see `embedded.rs` of the test `cli`.
const MODEL_SUITES: [&str; 2] = ["message", "limits"];

/// Faults of one case on the model, and the verdicts that they may cause besides that of the
/// baseline.
const MODEL_FAULTS: [&str; 9] = [
    "event-lost: {}",
    "event-doubled: {}",
    "event-late: {by: 1m}",
    "watch-closed: {at: 2s}",
    "watch-expired: {at: 2s}",
    "api-error: {at: 2s}",
    "api-slow: {at: 2s, by: 1s}",
    "kubelet-restart: {at: 3s}",
    "node-gone: {at: 3s}",
];

/// Random numbers by seed (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The numbers of one part of the plan.
    pub fn new(seed: u64, part: u64) -> Self {
        Self(seed.wrapping_add(part.wrapping_mul(0xD1B5_4A32_D192_ED03)))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn up_to(&mut self, milliseconds: u64) -> Duration {
        Duration::from_millis(self.below(milliseconds))
    }
}

/// A signal to a process, by the time since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    pub signal: Signal,
    pub after: Duration,
}

/// A command of evictlab.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `run --backend existing` on the served cluster.
    Existing(Vec<String>),
    /// `run --backend embedded`, with a fault in the second part.
    Model(Vec<String>, Option<&'static str>),
    /// `gc --backend existing`; `elsewhere` in another namespace of process IDs.
    Gc { dry: bool, elsewhere: bool },
}

/// A command, the time of its start in the round, and the signals to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub start: Duration,
    pub command: Command,
    pub stops: Vec<Stop>,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:4.1} s: ", self.start.as_secs_f64())?;
        match &self.command {
            Command::Existing(arguments) => {
                write!(f, "run on the existing cluster: {}", arguments.join(" "))?
            }
            Command::Model(arguments, None) => write!(f, "run on the model: {}", arguments.join(" "))?,
            Command::Model(arguments, Some(fault)) => {
                write!(f, "run on the model: {} with {fault}", arguments.join(" "))?;
            }
            Command::Gc { dry, elsewhere } => {
                let dry = if *dry { " --dry-run" } else { "" };
                write!(f, "gc{dry}{}", if *elsewhere { " in another pid namespace" } else { "" })?;
            }
        }
        for Stop { signal, after } in &self.stops {
            write!(f, ", {} after {:.2} s", signal_name(*signal), after.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Name of a signal.
pub fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        Signal::HUP => "SIGHUP",
        _ => "SIGKILL",
    }
}

/// Returns the actions of a round: up to four runs and two collections at the same time.
pub fn round(seed: u64, number: u64) -> Vec<Action> {
    let mut random = Random::new(seed, number);
    let runs = 1 + random.below(4);
    let collections = random.below(3);
    let mut actions: Vec<Action> = (0..runs).map(|_| run(&mut random)).collect();
    actions.extend((0..collections).map(|_| collection(&mut random)));
    actions
}

fn run(random: &mut Random) -> Action {
    let start = random.up_to(4000);
    if random.below(4) == 0 {
        let kubelet = random.one_of(&["v1.29", "v1.31", "v1.32", "v1.36"]);
        let suite = random.one_of(&MODEL_SUITES);
        let seed = random.below(1000).to_string();
        let fault = (random.below(2) == 0).then(|| random.one_of(&MODEL_FAULTS));
        let arguments = [suite, "--kubelet", kubelet, "--seed", &seed].map(str::to_owned).to_vec();
        return Action { start, command: Command::Model(arguments, fault), stops: stops(random, 6000) };
    }
    let mut arguments = existing_cases(random);
    match random.below(4) {
        0 => arguments.extend(["--node-selector", "kubernetes.io/hostname=v1-32-worker2"].map(str::to_owned)),
        1 => arguments.push("--allow-disruption".to_owned()),
        2 => arguments.extend(["--timeout", "6s"].map(str::to_owned)),
        _ => {}
    }
    Action { start, command: Command::Existing(arguments), stops: stops(random, 14_000) }
}

fn existing_cases(random: &mut Random) -> Vec<String> {
    let mut cases = vec![random.one_of(&SHARED_CLUSTER_CASES).to_owned()];
    if random.below(2) == 0 {
        cases.push(random.one_of(&SHARED_CLUSTER_CASES).to_owned());
    }
    cases
}

/// Events of a run on the worker of a kind cluster, by the time since its start.
pub struct WorkerPlan {
    pub signal: Option<Signal>,
    pub signal_at: Duration,
    /// Not reached if the signal comes first.
    pub gc_at: Duration,
}

impl WorkerPlan {
    /// Returns the plan of a round; `run_duration` is that of a run without a signal.
    pub fn new(seed: u64, number: u64, run_duration: Duration) -> Self {
        let mut random = Random::new(seed, number);
        let signals = [None, Some(Signal::KILL), Some(Signal::KILL), Some(Signal::INT), Some(Signal::TERM)];
        let signal = random.one_of(&signals);
        let mut moment = || run_duration.mul_f64(random.below(1000) as f64 / 1000.0);
        Self { signal, signal_at: moment(), gc_at: moment() }
    }
}

impl fmt::Display for WorkerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.signal.map_or("no signal", signal_name);
        let [signal_at, gc_at] = [self.signal_at, self.gc_at].map(|at| at.as_secs_f64());
        write!(f, "{name} after {signal_at:.1} s, gc after {gc_at:.1} s")
    }
}

/// Returns the actions of the backend `existing` on a kind cluster in a round, beside a run that
/// starves its worker: up to two runs on its control plane and two collections at the same time.
pub fn round_of_existing(seed: u64, number: u64) -> Vec<Action> {
    let mut random = Random::new(seed, number | 1 << 32);
    let runs = random.below(3);
    let collections = random.below(3);
    let mut actions: Vec<Action> = (0..runs).map(|_| run_on_control_plane(&mut random)).collect();
    actions.extend((0..collections).map(|_| collection(&mut random)));
    actions
}

fn run_on_control_plane(random: &mut Random) -> Action {
    let start = random.up_to(4000);
    let mut arguments = existing_cases(random);
    let node = ["--allow-control-plane", "--node-selector", "node-role.kubernetes.io/control-plane"];
    arguments.extend(node.map(str::to_owned));
    if random.below(4) == 0 {
        arguments.extend(["--timeout", "20s"].map(str::to_owned));
    }
    Action { start, command: Command::Existing(arguments), stops: stops(random, 30_000) }
}

fn collection(random: &mut Random) -> Action {
    let start = random.up_to(12_000);
    let command = Command::Gc { dry: random.below(4) == 0, elsewhere: random.below(2) == 0 };
    let stops = match random.below(4) {
        0 => vec![Stop { signal: Signal::KILL, after: random.up_to(1500) }],
        _ => Vec::new(),
    };
    Action { start, command, stops }
}

/// Three of four runs are stopped: killed, interrupted, or interrupted twice.
fn stops(random: &mut Random, span: u64) -> Vec<Stop> {
    let after = random.up_to(span);
    let again = after + random.up_to(1500);
    match random.below(8) {
        0 | 1 => Vec::new(),
        2..=4 => vec![Stop { signal: Signal::KILL, after }],
        5 => {
            let signal = random.one_of(&[Signal::INT, Signal::TERM]);
            let second = random.one_of(&[Signal::INT, Signal::KILL]);
            vec![Stop { signal, after }, Stop { signal: second, after: again }]
        }
        _ => vec![Stop { signal: random.one_of(&[Signal::INT, Signal::TERM, Signal::HUP]), after }],
    }
}

/// A fault of the served cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFault {
    /// The fault, as for `--fault`.
    pub script: String,
    /// Its start after that of the cluster.
    pub start: Duration,
}

/// Time for which a fault of the served cluster may show in a run.
pub const FAULT_EFFECT: Duration = Duration::from_secs(45);

/// Returns the faults of the served cluster: one every minute or so. Faults that change objects of
/// others, such as an unreachable node, are left to the runs on the model.
pub fn server_faults(seed: u64, length: Duration) -> Vec<ServerFault> {
    let mut random = Random::new(seed, u64::MAX);
    let mut faults = Vec::new();
    let mut start = Duration::from_secs(20);
    while start < length {
        let at = start.as_secs();
        let script = match random.below(5) {
            0 => format!("api-error: {{at: {at}s, for: {}s, code: 503}}", 2 + random.below(20)),
            1 => format!("api-error: {{at: {at}s, for: 5s, resource: leases}}"),
            2 => format!("api-slow: {{at: {at}s, for: 10s, by: {}ms}}", 200 + random.below(1500)),
            3 => format!("watch-closed: {{at: {at}s}}"),
            _ => format!("watch-expired: {{at: {at}s}}"),
        };
        faults.push(ServerFault { script, start });
        start += Duration::from_secs(40 + random.below(60));
    }
    faults
}

/// The plan depends on the seed only.
pub fn assert_replays(seed: u64) {
    let actions = |seed, number| (round(seed, number), round_of_existing(seed, number));
    let plan = |seed| (0..50).map(|number| actions(seed, number)).collect::<Vec<_>>();
    assert_eq!(plan(seed), plan(seed));
    assert_ne!(plan(seed), plan(seed.wrapping_add(1)));
    let hour = Duration::from_secs(3600);
    assert_eq!(server_faults(seed, hour), server_faults(seed, hour));
}
