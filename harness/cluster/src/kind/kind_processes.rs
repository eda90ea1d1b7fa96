//! Processes of kind: kind itself and its `docker` commands. They outlive a killed run and may
//! create containers while others are being removed.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::record::ClusterRecord;

/// Environment variable of kind, which its children inherit. A process id in a file would be
/// written only after the process has started.
pub(super) const VARIABLE: &str = "EVICTLAB_KIND_MAKES";

/// The processes of kind that create or delete a cluster of a run on a Docker daemon. Other runs,
/// with other state directories, and other daemons may have clusters of the same name.
#[derive(Clone, Debug)]
pub(super) struct KindProcesses {
    /// Value of [`VARIABLE`].
    pub(super) value: String,
}

impl KindProcesses {
    pub(super) fn of(cluster: &str, run: &str, docker_id: &str) -> Self {
        Self { value: format!("{cluster}/{run}/{docker_id}") }
    }

    pub(super) fn of_record(record: &ClusterRecord) -> Self {
        Self::of(&record.cluster, &record.run, &record.docker_id)
    }

    /// Ids of the local processes.
    pub(super) fn list(&self) -> Vec<u32> {
        let variable = format!("{VARIABLE}={}", self.value);
        let Ok(processes) = fs::read_dir("/proc") else { return list_with_ps(&variable) };
        processes
            .filter_map(|entry| {
                let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
                // The environment of other users' processes is not readable.
                let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
                environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()).then_some(pid)
            })
            .collect()
    }

    /// Stops kind: SIGTERM, then SIGKILL. Its children exit when their work is done or their
    /// container is removed.
    pub(super) async fn stop(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            for _ in 0..50 {
                let leaders: Vec<u32> = self.list().into_iter().filter(|pid| is_group_leader(*pid)).collect();
                if leaders.is_empty() {
                    return;
                }
                for leader in leaders.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
                    // The process may have exited already.
                    let _ignored = kill_process(leader, signal);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Returns whether a process leads its process group, like kind and unlike its children.
fn is_group_leader(pid: u32) -> bool {
    let id = Pid::from_raw(pid as i32);
    id.is_some() && rustix::process::getpgid(id).ok() == id
}

/// Lists the processes on systems without `/proc`: `ps` shows environments after the commands.
fn list_with_ps(variable: &str) -> Vec<u32> {
    let listed = duct::cmd!("ps", "-A", "-E", "-w", "-w", "-o", "pid=,command=").stderr_null().read();
    let listed = listed.unwrap_or_default();
    let matching = listed.lines().filter(|line| line.split_whitespace().any(|word| word == variable));
    matching.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn stops_the_leader_and_lists_its_children() {
        let cluster = format!("kind-processes-test-{}", std::process::id());
        let processes = KindProcesses::of(&cluster, "run", "daemon");
        let mut kind = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .env(VARIABLE, &processes.value)
            .process_group(0)
            .spawn()
            .unwrap();
        while processes.list().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let others =
            [("kind-processes", "run", "daemon"), (&cluster, "other", "daemon"), (&cluster, "run", "other")];
        for (cluster, run, daemon) in others {
            let others = KindProcesses::of(cluster, run, daemon);
            assert!(others.list().is_empty(), "{others:?}");
            others.stop().await;
        }
        assert!(kind.try_wait().unwrap().is_none());
        processes.stop().await;
        assert!(kind.wait().unwrap().code().is_none());
        let left = processes.list();
        assert!(matches!(left[..], [child] if child != kind.id()), "{left:?}");
        rustix::process::kill_process(Pid::from_raw(left[0] as i32).unwrap(), Signal::KILL).unwrap();
    }
}
