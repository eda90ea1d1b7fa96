//! OOM kills in the kernel's log, and in events about it.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::explanation::Unnamed;

/// `mm/oom_kill.c`, `__oom_kill_process`. Kernels before 4.19 write two lines, `Kill process … or
/// sacrifice child` and `Killed process …`.
static KILL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:(?<scope>Memory cgroup out of memory|Out of memory)[^:]*: )?\b(?:Killed|Kill) process (?<pid>\d+),?(?: UID \d+,)? \((?<name>[^)]*)\)(?:.*?anon-rss:(?<rss>\d+)kB)?",
    )
    .expect("the pattern is valid")
});
/// `mm/oom_kill.c`, `dump_oom_summary`.
static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"oom-kill:constraint=(?<constraint>[A-Z_]+),.*?(?:,oom_memcg=(?<limited>[^,\s]+))?(?:,global_oom)?,task_memcg=(?<cgroup>[^,\s]+),task=(?<name>.*?),pid=(?<pid>\d+)",
    )
    .expect("the pattern is valid")
});
/// The same of kernels before 4.19, which do not write the process id.
static TASK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Task in (?<cgroup>\S+) killed as a result of limit of (?<limited>\S+)")
        .expect("the pattern is valid")
});
/// `mm/memcontrol.c`, `mem_cgroup_print_oom_group`: the kernel kills all processes of the cgroup,
/// which kubelets since 1.28 configure for containers (cgroup v2).
static GROUP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Tasks in (?<cgroup>\S+) are going to be killed due to memory\.oom\.group set")
        .expect("the pattern is valid")
});
/// `src/oom/oomd-manager.c` of systemd.
static OOMD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Killed (?<cgroup>/\S+) due to (?<cause>(?:memory|swap) (?:pressure|used).*?)\s*$")
        .expect("the pattern is valid")
});
/// The event of the kubelet's OOM watcher (`pkg/kubelet/oom`).
static SYSTEM_OOM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"System OOM encountered, victim process: (?<name>[^,]*), pid: (?<pid>\d+)")
        .expect("the pattern is valid")
});
/// The cgroup of a pod, as the drivers `systemd` and `cgroupfs` name it.
static POD_CGROUP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[/-]pod(?<uid>[0-9a-f]{8}[_-]?[0-9a-f]{4}[_-]?[0-9a-f]{4}[_-]?[0-9a-f]{4}[_-]?[0-9a-f]{12})")
        .expect("the pattern is valid")
});

const STAYS: &str =
    "An OOM kill is not an eviction: the pod stays on its node, and the container may be restarted.";
/// 10 MiB in KiB.
const TEN_MIB: u64 = 10 << 10;

/// The explanation of an OOM kill.
pub(crate) struct KillReport {
    /// Name of the node, if the log has it.
    pub node: Option<String>,
    /// The cause in sentences.
    pub why: Vec<String>,
    /// Subject of the report, if its pod has no name.
    pub unnamed: Unnamed,
}

/// OOM kills, in the order of a log.
#[derive(Default)]
pub(crate) struct KernelLog {
    kills: Vec<OomKill>,
    /// The last kill of each process id, about which more lines may follow.
    last: HashMap<String, usize>,
    /// The cgroups of the next kill.
    next: Option<Summary>,
    /// The kill after which the kernel kills the other processes of the cgroup.
    group: Option<usize>,
    /// Kills by systemd-oomd.
    by_systemd: Vec<KillReport>,
}

/// An OOM kill, as far as the log has it.
#[derive(Default)]
struct OomKill {
    name: String,
    pid: String,
    /// `Memory cgroup out of memory` or `Out of memory`.
    scope: Option<String>,
    rss_kib: Option<u64>,
    summary: Option<Summary>,
    node: Option<String>,
    /// Number of other processes of the cgroup that were killed.
    others: usize,
}

/// The line `oom-kill:constraint=…` of a kill.
struct Summary {
    constraint: String,
    /// The cgroup that reached its limit.
    limited: Option<String>,
    /// The cgroup of the process.
    cgroup: String,
}

impl KernelLog {
    /// Reads a line of a node; returns whether it is about an OOM kill.
    pub(crate) fn read(&mut self, line: &str, node: Option<&str>) -> bool {
        // Most lines of an input are not of the kernel.
        if !["ill", "System OOM"].into_iter().any(|part| line.contains(part)) {
            return false;
        }
        if self.read_group(line, node) {
            return true;
        }
        let part = if let Some(found) = SUMMARY.captures(line) {
            self.group = None;
            let summary = Summary {
                constraint: found["constraint"].to_owned(),
                limited: found.name("limited").map(|found| found.as_str().to_owned()),
                cgroup: found["cgroup"].to_owned(),
            };
            OomKill { summary: Some(summary), ..OomKill::of(&found) }
        } else if let Some(found) = KILL.captures(line) {
            let kill = OomKill {
                scope: found.name("scope").map(|found| found.as_str().to_owned()),
                rss_kib: found.name("rss").and_then(|kib| kib.as_str().parse().ok()),
                ..OomKill::of(&found)
            };
            if kill.scope.is_none() && kill.rss_kib.is_none() {
                return false;
            }
            OomKill { summary: self.next.take(), ..kill }
        } else if let Some(found) = SYSTEM_OOM.captures(line) {
            OomKill { scope: Some("Out of memory".to_owned()), ..OomKill::of(&found) }
        } else if let Some(found) = TASK.captures(line) {
            self.next = Some(Summary {
                constraint: "CONSTRAINT_MEMCG".to_owned(),
                limited: Some(found["limited"].to_owned()),
                cgroup: found["cgroup"].to_owned(),
            });
            return true;
        } else {
            return false;
        };
        self.add(OomKill { node: node.map(str::to_owned), ..part });
        true
    }

    /// Reads a line about all processes of a cgroup, or about one of them; returns whether it is
    /// one.
    fn read_group(&mut self, line: &str, node: Option<&str>) -> bool {
        if let Some(found) = OOMD.captures(line) {
            let report = killed_by_systemd(&found["cgroup"], &found["cause"]);
            self.by_systemd.push(KillReport { node: node.map(str::to_owned), ..report });
            return true;
        }
        if let Some(found) = GROUP.captures(line) {
            self.group = self.kills.len().checked_sub(1);
            if let Some(kill) = self.kills.last_mut() {
                let summary = || Summary {
                    constraint: "CONSTRAINT_MEMCG".to_owned(),
                    limited: None,
                    cgroup: found["cgroup"].to_owned(),
                };
                kill.summary.get_or_insert_with(summary);
            }
            return true;
        }
        if line.contains("invoked oom-killer") {
            self.group = None;
        }
        let Some(found) = KILL.captures(line).filter(|found| found.name("scope").is_some()) else {
            return false;
        };
        let kill = self.group.and_then(|at| self.kills.get_mut(at));
        let Some(kill) = kill.filter(|_| found["scope"].starts_with("Memory cgroup")) else { return false };
        // The line about the first process may be repeated.
        kill.others += usize::from(kill.pid != found["pid"]);
        true
    }

    /// Adds what a line states about a kill.
    fn add(&mut self, part: OomKill) {
        let known = self.last.get(&part.pid).and_then(|at| self.kills.get_mut(*at));
        match known.filter(|known| known.is_continued_by(&part)) {
            Some(known) => {
                known.node = known.node.take().or(part.node);
                known.scope = known.scope.take().or(part.scope);
                known.rss_kib = known.rss_kib.or(part.rss_kib);
                known.summary = known.summary.take().or(part.summary);
            }
            None => {
                self.last.insert(part.pid.clone(), self.kills.len());
                self.kills.push(part);
            }
        }
    }

    /// Explains the kills.
    pub(crate) fn explain(self) -> impl Iterator<Item = KillReport> {
        let by_kernel = self.kills.into_iter();
        let by_kernel = by_kernel.map(|kill| KillReport {
            why: kill.explain(),
            unnamed: kill.unnamed(),
            node: kill.node,
        });
        by_kernel.chain(self.by_systemd)
    }
}

impl OomKill {
    fn of(found: &Captures<'_>) -> Self {
        Self { name: found["name"].to_owned(), pid: found["pid"].to_owned(), ..Self::default() }
    }

    /// Returns whether another line may be about this kill: no line states the same twice. The
    /// newest line of a log may be the first one.
    fn is_continued_by(&self, part: &Self) -> bool {
        let repeats = (part.rss_kib.is_some() && self.rss_kib.is_some())
            || (part.summary.is_some() && self.summary.is_some());
        self.name == part.name && !repeats
    }

    fn unnamed(&self) -> Unnamed {
        self.summary.as_ref().map_or(Unnamed::Process, |summary| unnamed(&summary.cgroup))
    }

    fn explain(&self) -> Vec<String> {
        let Self { name, pid, .. } = self;
        let cause = self.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
        let usage = self.rss_kib.map(|kib| match kib {
            0..TEN_MIB => format!(" It used {kib} KiB."),
            _ => format!(" It used {} MiB.", (kib + 512) >> 10),
        });
        let usage = usage.unwrap_or_default();
        let others = match self.others {
            0 => String::new(),
            1 => " It killed another process of the container with it (memory.oom.group).".to_owned(),
            count => {
                format!(" It killed {count} other processes of the container with it (memory.oom.group).")
            }
        };
        let kill = format!("The kernel OOM-killed the process {name} (PID {pid}){cause}.{usage}{others}");
        let cgroup = self.summary.as_ref().map(|summary| summary.cgroup.as_str());
        match (cgroup, cgroup.and_then(pod_uid)) {
            (None, _) => vec![
                kill,
                "An OOM kill is not an eviction: the pod of a process stays on its node, and the container may be \
                 restarted. Another line of the kernel's log may name the cgroup and with it the pod \
                 (oom-kill:… task_memcg=…)."
                    .to_owned(),
            ],
            (Some(_), Some(uid)) => vec![kill, describe_pod("process", &uid), STAYS.to_owned()],
            (Some(cgroup), None) => vec![
                kill,
                format!(
                    "The process was in the cgroup {cgroup}, which is not that of a pod. This is not an eviction."
                ),
            ],
        }
    }

    /// Returns the cause as a clause, if a line states it.
    fn cause(&self) -> Option<String> {
        const NO_MEMORY: &str = "the node had no memory left";
        let Some(Summary { constraint, limited, cgroup }) = &self.summary else {
            return Some(match self.scope.as_deref()? {
                "Out of memory" => NO_MEMORY.to_owned(),
                _ => "its cgroup, or one above it, such as that of its pod, reached its memory limit"
                    .to_owned(),
            });
        };
        Some(match (constraint.as_str(), limited) {
            ("CONSTRAINT_NONE", _) => NO_MEMORY.to_owned(),
            ("CONSTRAINT_MEMCG", Some(limited)) if limited == cgroup && pod_uid(cgroup).is_some() => {
                "its container reached its memory limit".to_owned()
            }
            ("CONSTRAINT_MEMCG", Some(limited))
                if pod_uid(limited).is_some() && pod_uid(limited) == pod_uid(cgroup) =>
            {
                "its pod reached its memory limit".to_owned()
            }
            ("CONSTRAINT_MEMCG", Some(limited)) => format!("the cgroup {limited} reached its memory limit"),
            ("CONSTRAINT_MEMCG", None) => "a cgroup reached its memory limit".to_owned(),
            _ => format!("the part of the node's memory that it may use was full ({constraint})"),
        })
    }
}

/// Explains a kill by systemd-oomd.
fn killed_by_systemd(cgroup: &str, cause: &str) -> KillReport {
    let kill = format!("systemd-oomd killed the processes of a cgroup due to {cause}.");
    let why = match pod_uid(cgroup) {
        Some(uid) => vec![kill, describe_pod("cgroup", &uid), STAYS.to_owned()],
        None => vec![format!("{kill} The cgroup {cgroup} is not that of a pod. This is not an eviction.")],
    };
    KillReport { node: None, why, unnamed: unnamed(cgroup) }
}

fn unnamed(cgroup: &str) -> Unnamed {
    if pod_uid(cgroup).is_some() { Unnamed::Pod } else { Unnamed::ProcessOutsideOfPods }
}

/// Returns the UID of the pod that a cgroup belongs to.
fn pod_uid(cgroup: &str) -> Option<String> {
    POD_CGROUP.captures(cgroup).map(|found| found["uid"].replace('_', "-"))
}

/// Describes the pod of a process or of a cgroup, and how to find its name. The UID of a static pod
/// is a hash of its manifest, which its mirror pod has as an annotation.
fn describe_pod(part: &str, uid: &str) -> String {
    if uid.contains('-') {
        format!(
            "The {part} was of the pod with the UID {uid}: kubectl get pods -A \
             -o custom-columns=:.metadata.namespace,:.metadata.name,:.metadata.uid"
        )
    } else {
        format!("The {part} was of the static pod with the annotation kubernetes.io/config.hash: {uid}.")
    }
}
