//! Files that the kernel makes when they are read: what a container finds of itself in `/proc` and `/sys/fs/cgroup`.
//!
//! A container sees its own group there, whatever is above it: on cgroup v2 by its namespace, on v1 by its mounts.

use super::CgroupVersion;
use super::container::Container;
use super::groups::Pages;
use super::kernel::Kernel;
use super::process::Pid;

/// `memory.limit_in_bytes` of a group without one: as many pages as fit (`PAGE_COUNTER_MAX`).
const NO_LIMIT: u64 = 9_223_372_036_854_771_712;

const V2: &str = "/sys/fs/cgroup";
const V1_MEMORY: &str = "/sys/fs/cgroup/memory";
const V1_PIDS: &str = "/sys/fs/cgroup/pids";

/// The files of a group on cgroup v2.
const V2_FILES: [&str; 7] = [
    "cgroup.controllers",
    "memory.current",
    "memory.max",
    "memory.oom.group",
    "memory.stat",
    "pids.current",
    "pids.max",
];
/// Those of the memory controller's hierarchy on v1.
const V1_MEMORY_FILES: [&str; 3] = ["memory.limit_in_bytes", "memory.stat", "memory.usage_in_bytes"];
/// Those of the process numbers'.
const V1_PIDS_FILES: [&str; 2] = ["pids.current", "pids.max"];

impl Kernel {
    /// What is in such a file at an absolute path, as a process sees it; none if there is none.
    pub fn fact(&self, me: Pid, path: &str) -> Option<String> {
        let container = self.container(me)?;
        let (directory, name) = path.rsplit_once('/')?;
        let text = match (self.cgroup, directory) {
            (_, "/proc/sys/kernel") if name == "pid_max" => self.max_pid.to_string(),
            (CgroupVersion::V2, V2) => self.v2(container, name)?,
            (CgroupVersion::V1, V1_MEMORY) => self.v1_memory(container, name)?,
            (CgroupVersion::V1, V1_PIDS) => self.pids(container, name)?,
            (_, directory) => {
                let number = directory.strip_prefix("/proc/")?;
                let there = number == "self" || self.inner(me, number.parse().ok()?).is_some();
                // The score is set for the first process, and all others come from it.
                (there && name == "oom_score_adj").then(|| container.spec.oom_score_adj.to_string())?
            }
        };
        Some(text + "\n")
    }

    /// The names in a directory of such files; none if it is no such directory.
    pub fn facts(&self, path: &str) -> Option<&'static [&'static str]> {
        match (self.cgroup, path) {
            (CgroupVersion::V2, V2) => Some(&V2_FILES),
            (CgroupVersion::V1, V2) => Some(&["memory", "pids"]),
            (CgroupVersion::V1, V1_MEMORY) => Some(&V1_MEMORY_FILES),
            (CgroupVersion::V1, V1_PIDS) => Some(&V1_PIDS_FILES),
            _ => None,
        }
    }

    /// The most tasks of a container by itself: systemd gives a scope 15 % of all numbers (`DefaultTasksMax`), whatever the kubelet says.
    pub fn scope_limit(&self) -> u64 {
        self.max_pid * 15 / 100
    }

    fn v2(&self, container: &Container, name: &str) -> Option<String> {
        let group = container.group?;
        let pages = self.groups.pages(group);
        Some(match name {
            "cgroup.controllers" => "cpuset cpu io memory hugetlb pids rdma misc".to_owned(),
            "memory.current" => pages.total().to_string(),
            "memory.max" => {
                container.spec.memory_limit.map_or_else(|| "max".to_owned(), |limit| limit.to_string())
            }
            "memory.oom.group" => u8::from(container.spec.oom_group).to_string(),
            "memory.stat" => {
                let file = pages.inactive + pages.active + pages.shmem;
                listed(&[
                    ("anon", pages.anon),
                    ("file", file),
                    ("kernel", pages.kernel),
                    ("shmem", pages.shmem),
                    // Pages of processes are put on the list of those used once.
                    ("inactive_anon", pages.anon + pages.shmem),
                    ("active_anon", 0),
                    ("inactive_file", pages.inactive),
                    ("active_file", pages.active),
                    ("unevictable", 0),
                ])
            }
            name => return self.pids(container, name),
        })
    }

    fn v1_memory(&self, container: &Container, name: &str) -> Option<String> {
        let group = container.group?;
        let pages = self.groups.pages(group);
        let limit = container.spec.memory_limit.unwrap_or(NO_LIMIT);
        Some(match name {
            "memory.usage_in_bytes" => pages.total().to_string(),
            "memory.limit_in_bytes" => limit.to_string(),
            "memory.stat" => {
                let own = v1_stat(&pages);
                let total = own.iter().map(|(name, bytes)| (format!("total_{name}"), *bytes));
                let own = own.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes));
                let limit = ("hierarchical_memory_limit".to_owned(), limit);
                listed(&own.chain([limit]).chain(total).collect::<Vec<_>>())
            }
            _ => return None,
        })
    }

    fn pids(&self, container: &Container, name: &str) -> Option<String> {
        match name {
            "pids.current" => Some(container.tasks.to_string()),
            "pids.max" => Some(self.scope_limit().to_string()),
            _ => None,
        }
    }
}

/// `memory.stat` of v1, of the group alone; there is none below a container's.
fn v1_stat(pages: &Pages) -> [(&'static str, u64); 7] {
    [
        ("cache", pages.inactive + pages.active + pages.shmem),
        ("rss", pages.anon),
        ("shmem", pages.shmem),
        ("inactive_anon", pages.anon + pages.shmem),
        ("active_anon", 0),
        ("inactive_file", pages.inactive),
        ("active_file", pages.active),
    ]
}

/// A line for each number.
fn listed(numbers: &[(impl AsRef<str>, u64)]) -> String {
    let lines: Vec<String> =
        numbers.iter().map(|(name, number)| format!("{} {number}", name.as_ref())).collect();
    lines.join("\n")
}
