//! Who made a cluster, so that what a dead run left can be told from what a live one uses.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process, told apart from a later one with the same id by when it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// When it started, in the system's own words.
    pub started: String,
    /// The host that it runs on.
    pub host: String,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        Self::of(std::process::id()).unwrap_or_else(|| Self {
            pid: std::process::id(),
            started: String::new(),
            host: host(),
        })
    }

    /// The process of this id, if it runs.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: started(pid)?, host: host() })
    }

    /// Whether it is, or was, a process of this host, which can be asked for it.
    pub fn is_here(&self) -> bool {
        self.host == host()
    }

    /// Whether the process still runs. One on another host cannot be asked and counts as alive.
    pub fn alive(&self) -> bool {
        !self.is_here() || started(self.pid).is_some_and(|started| started == self.started)
    }
}

/// The host's name; a container's or a rebooted machine's processes are told apart by [`started`].
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// When a process started: on Linux the boot's id and the ticks since (`/proc/PID/stat`, field 22), elsewhere what `ps` says.
fn started(pid: u32) -> Option<String> {
    if let Ok(boot) = fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field, the command in parentheses, may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        if fields.next()? == "Z" {
            return None;
        }
        return Some(format!("{}/{}", boot.trim(), fields.nth(18)?));
    }
    let said = duct::cmd!("ps", "-o", "lstart=", "-p", pid.to_string()).stderr_null().read().ok()?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        assert!(Owner::this().alive());
        let child = duct::cmd!("sleep", "60").start().unwrap();
        let owner = Owner::of(child.pids()[0]).unwrap();
        assert!(owner.alive());
        child.kill().unwrap();
        child.wait().ok();
        assert!(!owner.alive());
        let reused = Owner { started: "earlier".to_owned(), ..Owner::this() };
        assert!(!reused.alive(), "the same id, but not the same process");
        let elsewhere = Owner { host: "another".to_owned(), pid: 1, started: "?".to_owned() };
        assert!(elsewhere.alive(), "it cannot be asked");
    }
}
