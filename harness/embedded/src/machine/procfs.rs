//! Files of `/proc` and `/sys/fs/cgroup`.
//!
//! A container sees its own cgroup at the root of the hierarchy: by its cgroup namespace on v2, by
//! its mounts on v1.

use evictlab_rules::quantity::KIB;

use super::cgroups::Pages;
use super::container::Container;
use super::ids::{Pid, ROOT_CGROUP};
use super::kernel::Kernel;
use crate::options::CgroupVersion;

/// `memory.limit_in_bytes` of a cgroup without a limit (`PAGE_COUNTER_MAX`).
const NO_LIMIT: u64 = 9_223_372_036_854_771_712;

/// Eight stacks of 16 KiB.
const BYTES_PER_THREAD: u64 = 128 * KIB;

const CGROUP: &str = "/sys/fs/cgroup";
const V1_MEMORY: &str = "/sys/fs/cgroup/memory";
const V1_PIDS: &str = "/sys/fs/cgroup/pids";

const V2_FILES: [&str; 8] = [
    "cgroup.controllers",
    "memory.current",
    "memory.high",
    "memory.max",
    "memory.oom.group",
    "memory.stat",
    "pids.current",
    "pids.max",
];
const V1_MEMORY_FILES: [&str; 3] = ["memory.limit_in_bytes", "memory.stat", "memory.usage_in_bytes"];
const V1_PIDS_FILES: [&str; 2] = ["pids.current", "pids.max"];

impl Kernel {
    /// Returns the content of a file at an absolute path as `pid` reads it; `None` if it does not
    /// exist.
    pub(super) fn procfs_file(&self, pid: Pid, path: &str) -> Option<String> {
        let container = self.container_of(pid)?;
        let (directory, name) = path.rsplit_once('/')?;
        let text = match (self.cgroup, directory) {
            (_, "/proc/sys/kernel") if name == "pid_max" => self.max_pid.to_string(),
            (_, "/proc/sys/kernel") if name == "threads-max" => self.threads_max().to_string(),
            (_, "/proc") if name == "meminfo" => self.meminfo(),
            (CgroupVersion::V2, CGROUP) => self.v2_file(container, name)?,
            (CgroupVersion::V1, V1_MEMORY) => self.v1_memory_file(container, name)?,
            (CgroupVersion::V1, V1_PIDS) => self.pids_file(container, name)?,
            (_, directory) => {
                let number = directory.strip_prefix("/proc/")?;
                let exists = number == "self" || self.has_ns_pid(pid, number.parse().ok()?);
                // All processes of a container inherit the score of its first one.
                (exists && name == "oom_score_adj").then(|| container.spec.oom_score_adj.to_string())?
            }
        };
        Some(text + "\n")
    }

    /// Returns the names in a cgroup directory; `None` for another directory.
    pub(super) fn procfs_directory(&self, path: &str) -> Option<&'static [&'static str]> {
        match (self.cgroup, path) {
            (CgroupVersion::V2, CGROUP) => Some(&V2_FILES),
            (CgroupVersion::V1, CGROUP) => Some(&["memory", "pids"]),
            (CgroupVersion::V1, V1_MEMORY) => Some(&V1_MEMORY_FILES),
            (CgroupVersion::V1, V1_PIDS) => Some(&V1_PIDS_FILES),
            _ => None,
        }
    }

    /// Returns the largest number of tasks in a container: systemd limits a scope to 15 % of
    /// `pid_max` (`DefaultTasksMax`), whatever the kubelet sets.
    pub(super) fn scope_task_limit(&self) -> u64 {
        self.max_pid * 15 / 100
    }

    /// Returns the largest number of threads: their stacks may take an eighth of the memory
    /// (`set_max_threads` of Linux), but no fewer than there are process IDs.
    pub(super) fn threads_max(&self) -> u64 {
        self.max_pid.max(self.cgroups.total() / BYTES_PER_THREAD)
    }

    /// Memory of the node. All page cache counts as available.
    fn meminfo(&self) -> String {
        let (total, pages) = (self.cgroups.total(), self.cgroups.pages(ROOT_CGROUP));
        let cached = pages.inactive + pages.active;
        let free = total.saturating_sub(pages.total() + self.cgroups.huge_pages());
        let values =
            [("MemTotal", total), ("MemFree", free), ("MemAvailable", free + cached), ("Cached", cached)];
        values.map(|(name, bytes)| format!("{:<15} {:>8} kB", format!("{name}:"), bytes / KIB)).join("\n")
    }

    fn v2_file(&self, container: &Container, name: &str) -> Option<String> {
        let pages = self.cgroups.pages(container.cgroup?);
        let limit = self.cgroups.limit(container.cgroup?);
        Some(match name {
            "cgroup.controllers" => "cpuset cpu io memory hugetlb pids rdma misc".to_owned(),
            "memory.current" => pages.total().to_string(),
            "memory.high" => amount_or_max(container.spec.memory_high),
            "memory.max" => amount_or_max(limit),
            "memory.oom.group" => u8::from(container.spec.oom_group).to_string(),
            "memory.stat" => lines(&[
                ("anon", pages.anon),
                ("file", pages.inactive + pages.active + pages.shmem),
                ("kernel", pages.kernel),
                ("shmem", pages.shmem),
                // Anonymous pages begin on the inactive list.
                ("inactive_anon", pages.anon + pages.shmem),
                ("active_anon", 0),
                ("inactive_file", pages.inactive),
                ("active_file", pages.active),
                ("unevictable", 0),
            ]),
            name => return self.pids_file(container, name),
        })
    }

    fn v1_memory_file(&self, container: &Container, name: &str) -> Option<String> {
        let pages = self.cgroups.pages(container.cgroup?);
        let limit = self.cgroups.limit(container.cgroup?).unwrap_or(NO_LIMIT);
        Some(match name {
            "memory.usage_in_bytes" => pages.total().to_string(),
            "memory.limit_in_bytes" => limit.to_string(),
            "memory.stat" => {
                // A container's cgroup has no children: its totals are its own values.
                let own = v1_memory_stat(&pages);
                let total = own.iter().map(|(name, bytes)| (format!("total_{name}"), *bytes));
                let own = own.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes));
                let limit = ("hierarchical_memory_limit".to_owned(), limit);
                lines(&own.chain([limit]).chain(total).collect::<Vec<_>>())
            }
            _ => return None,
        })
    }

    fn pids_file(&self, container: &Container, name: &str) -> Option<String> {
        match name {
            "pids.current" => Some(container.tasks.to_string()),
            "pids.max" => Some(self.scope_task_limit().to_string()),
            _ => None,
        }
    }
}

fn amount_or_max(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string())
}

fn v1_memory_stat(pages: &Pages) -> [(&'static str, u64); 7] {
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

fn lines(values: &[(impl AsRef<str>, u64)]) -> String {
    let lines: Vec<String> =
        values.iter().map(|(name, value)| format!("{} {value}", name.as_ref())).collect();
    lines.join("\n")
}
