//! Process identity: which process owns a cluster, a namespace or a container.

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::job_index::JobIndex;

/// File with the id of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Age after which clusters, namespaces and containers count as abandoned whose process runs
/// elsewhere and that have neither a Lease nor a heartbeat.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_secs(12 * 3600);

/// Identity of a process. The start time distinguishes it from a later process with the same id,
/// and the scope from a process of another container or machine, whose state cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start time, as the operating system formats it; empty if it is unknown.
    #[serde(serialize_with = "serialize_started", deserialize_with = "deserialize_started")]
    #[schemars(with = "String")]
    pub started: Option<String>,
    /// Name of the host.
    pub host: String,
    /// Boot id and process id namespace on Linux, boot id on macOS, else empty. Hosts, and
    /// containers on one host, may have equal host names.
    #[serde(default)]
    pub scope: String,
    /// Index of a Job, if the process runs in one of its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobIndex>,
}

impl Owner {
    /// The current process.
    pub fn current() -> Self {
        let pid = std::process::id();
        let started = start_time(pid).ok().flatten();
        Self { pid, started, host: host_name(), scope: scope(), job: JobIndex::of_this_pod().ok() }
    }

    /// The process with this id; `None` if it does not run.
    pub fn from_pid(pid: u32) -> Option<Self> {
        let started = Some(start_time(pid).ok()??);
        Some(Self { pid, started, host: host_name(), scope: scope(), job: None })
    }

    /// Returns the identity as JSON, for a label or an annotation.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an owner has only texts and numbers")
    }

    /// Returns whether the process has the host and the process IDs of this one, and is not hidden
    /// from it, so that its state can be checked.
    pub fn is_local(&self) -> bool {
        self.host == host_name() && self.scope == scope() && !is_hidden(self.pid)
    }

    /// Returns whether the process is running. A process elsewhere counts as running, and so does
    /// one whose start time is unknown while a process has its id.
    pub fn is_alive(&self) -> bool {
        if !self.is_local() {
            return true;
        }
        match start_time(self.pid) {
            Ok(Some(started)) => self.started.as_ref().is_none_or(|own| *own == started),
            Ok(None) => false,
            Err(_) => true,
        }
    }
}

/// Writes an unknown start time as an empty text, which earlier versions can read.
fn serialize_started<S: Serializer>(started: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(started.as_deref().unwrap_or_default())
}

fn deserialize_started<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let started = String::deserialize(deserializer)?;
    Ok(Some(started).filter(|started| !started.is_empty()))
}

/// Host name. [`start_time`] distinguishes the processes of containers and of earlier boots.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn scope() -> String {
    static SCOPE: OnceLock<String> = OnceLock::new();
    let read = || {
        let boot = fs::read_to_string(BOOT_ID).ok().or_else(boot_session).unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{} {}", boot.trim(), namespace.display()).trim().to_owned()
    };
    SCOPE.get_or_init(read).clone()
}

/// Returns the boot id of macOS.
fn boot_session() -> Option<String> {
    let is_macos = cfg!(target_os = "macos");
    is_macos.then(|| duct::cmd!("sysctl", "-n", "kern.bootsessionuuid").stderr_null().read().ok())?
}

/// Returns whether a process exists, but /proc does not show it, as with the mount option `hidepid`
/// for processes of other users.
fn is_hidden(pid: u32) -> bool {
    let id = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let exists = || id.is_some_and(|id| rustix::process::test_kill_process(id) == Err(Errno::PERM));
    matches!(start_time(pid), Ok(None)) && exists()
}

/// Start time of a process: on Linux the boot id and the clock ticks since boot (`/proc/PID/stat`,
/// field 22), elsewhere the `lstart` column of `ps`. `None` if the process is not running.
///
/// # Errors
/// The start time is unknown.
fn start_time(pid: u32) -> io::Result<Option<String>> {
    let Ok(boot) = fs::read_to_string(BOOT_ID) else { return start_time_by_ps(pid) };
    let stat = match fs::read(format!("/proc/{pid}/stat")) {
        // The process has exited, at the latest between opening and reading the file.
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH)) => {
            return Ok(None);
        }
        stat => String::from_utf8_lossy(&stat?).into_owned(),
    };
    // The command in parentheses (field 2) may contain any character.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    match (fields.next(), fields.nth(18)) {
        (Some("Z"), _) => Ok(None),
        (Some(_), Some(ticks)) => Ok(Some(format!("{}/{ticks}", boot.trim()))),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Start time by `ps`, which exits with 1 if the process is not running.
fn start_time_by_ps(pid: u32) -> io::Result<Option<String>> {
    let started = ps(pid).stderr_null().unchecked().read()?;
    Ok(Some(started.trim().to_owned()).filter(|started| !started.is_empty()))
}

/// The command for the start time. The format depends on the locale and the time zone, in which two
/// processes may differ.
fn ps(pid: u32) -> duct::Expression {
    duct::cmd!("ps", "-o", "lstart=", "-p", pid.to_string()).env("LC_ALL", "C").env("TZ", "UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_exits() {
        assert!(Owner::current().is_alive());
        let child = duct::cmd!("sleep", "60").start().unwrap();
        let pid = child.pids()[0];
        let owner = Owner { pid, started: start_time(pid).unwrap(), ..Owner::current() };
        assert!(owner.started.is_some() && owner.is_alive());
        child.kill().unwrap();
        child.wait().ok();
        assert!(!owner.is_alive());
        let reused = Owner { started: Some("earlier".to_owned()), ..Owner::current() };
        assert!(!reused.is_alive(), "same id, different process");
        let started = Some("?".to_owned());
        let elsewhere = Owner { host: "another".to_owned(), pid: 1, started, ..Owner::current() };
        assert!(elsewhere.is_alive(), "processes of other hosts count as running");
        // A container's processes have other ids, even if it has the name of its host.
        let contained = Owner { scope: "boot pid:[1]".to_owned(), ..reused };
        assert!(contained.is_alive() && !contained.is_local());
        let earlier: Owner =
            serde_json::from_value(serde_json::json!({"pid": 1, "started": "", "host": host_name()}))
                .unwrap();
        assert_eq!(earlier.is_local(), scope().is_empty());
    }

    #[test]
    fn a_process_with_an_unknown_start_time_counts_as_running() {
        let child = duct::cmd!("sleep", "60").start().unwrap();
        let unknown = Owner { pid: child.pids()[0], started: None, ..Owner::current() };
        let json = serde_json::to_value(&unknown).unwrap();
        assert_eq!(json["started"], "", "earlier versions require a text");
        let read: Owner = serde_json::from_value(json).unwrap();
        assert_eq!(read, unknown);
        assert!(read.is_alive());
        child.kill().unwrap();
        child.wait().ok();
        assert!(!read.is_alive(), "no process has the id");
    }

    /// On other systems than Linux, the text identifies a process.
    #[test]
    fn the_output_of_ps_does_not_depend_on_the_time_zone() {
        let pid = std::process::id();
        let in_zone = |zone: &str| ps(pid).env("TZ", zone).read();
        let Ok(started) = in_zone("UTC") else { return };
        assert_eq!(in_zone("XXX-9").unwrap(), started);
        assert_eq!(start_time_by_ps(pid).unwrap().unwrap(), started.trim());
    }
}
