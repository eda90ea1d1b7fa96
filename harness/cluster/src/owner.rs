//! Process identity: which process owns a cluster, a namespace or a container.

use std::fs;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job_index::JobIndex;

/// File with the id of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Age after which leftovers without Lease or heartbeat of a process elsewhere count as abandoned.
pub(crate) const CLUSTER_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// Identity of a process. The start time distinguishes it from a later process with the same id,
/// and the scope from a process of another container or machine, whose state cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start time, as the operating system formats it.
    pub started: String,
    /// Name of the host.
    pub host: String,
    /// Boot id and process id namespace on Linux, else empty. Containers on one host may have equal
    /// host names.
    #[serde(default)]
    pub scope: String,
    /// Index of a Job, if the process runs in one of its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobIndex>,
}

impl Owner {
    /// The current process.
    pub fn this() -> Self {
        let pid = std::process::id();
        let started = start_time(pid).unwrap_or_default();
        Self { pid, started, host: host_name(), scope: scope(), job: JobIndex::of_this_pod().ok() }
    }

    /// The process with this id, if it is running.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: start_time(pid)?, host: host_name(), scope: scope(), job: None })
    }

    /// Returns whether the process has the host and the process ids of this one, and is not hidden
    /// from it, so that its state can be checked.
    pub fn is_here(&self) -> bool {
        self.host == host_name() && self.scope == scope() && !is_hidden(self.pid)
    }

    /// Returns whether the process is running. A process elsewhere counts as running.
    pub fn alive(&self) -> bool {
        !self.is_here() || start_time(self.pid).is_some_and(|started| started == self.started)
    }
}

/// Host name. [`start_time`] distinguishes the processes of containers and of earlier boots.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn scope() -> String {
    let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display()).trim().to_owned()
}

/// Returns whether a process exists, but /proc does not show it, as with the mount option `hidepid`
/// for processes of other users.
fn is_hidden(pid: u32) -> bool {
    let id = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let exists =
        || id.is_some_and(|id| rustix::process::test_kill_process(id) == Err(rustix::io::Errno::PERM));
    start_time(pid).is_none() && exists()
}

/// Start time of a running process: on Linux the boot id and the clock ticks since boot
/// (`/proc/PID/stat`, field 22), elsewhere the `lstart` column of `ps`.
fn start_time(pid: u32) -> Option<String> {
    if let Ok(boot) = fs::read_to_string(BOOT_ID) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command in parentheses (field 2) may contain any character.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        if fields.next()? == "Z" {
            return None;
        }
        return Some(format!("{}/{}", boot.trim(), fields.nth(18)?));
    }
    let started = duct::cmd!("ps", "-o", "lstart=", "-p", pid.to_string()).stderr_null().read().ok()?;
    Some(started.trim().to_owned()).filter(|started| !started.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_exits() {
        assert!(Owner::this().alive());
        let child = duct::cmd!("sleep", "60").start().unwrap();
        let owner = Owner::of(child.pids()[0]).unwrap();
        assert!(owner.alive());
        child.kill().unwrap();
        child.wait().ok();
        assert!(!owner.alive());
        let reused = Owner { started: "earlier".to_owned(), ..Owner::this() };
        assert!(!reused.alive(), "same id, different process");
        let started = "?".to_owned();
        let elsewhere = Owner { host: "another".to_owned(), pid: 1, started, ..Owner::this() };
        assert!(elsewhere.alive(), "processes of other hosts count as running");
        // A container's processes have other ids, even if it has the name of its host.
        let contained = Owner { scope: "boot pid:[1]".to_owned(), ..reused };
        assert!(contained.alive() && !contained.is_here());
        let earlier: Owner =
            serde_json::from_value(serde_json::json!({"pid": 1, "started": "", "host": host_name()}))
                .unwrap();
        assert_eq!(earlier.is_here(), scope().is_empty());
    }
}
