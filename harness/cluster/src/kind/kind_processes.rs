//! Processes of kind: kind itself and its `docker` commands. They outlive a killed run and may
//! create containers while others are being removed.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Environment variable of kind, which its children inherit; its value is the name of the cluster.
/// A process id in a file would be written only after the process has started.
pub(super) const VARIABLE: &str = "EVICTLAB_KIND_MAKES";

/// Ids of the local processes that are creating or deleting a cluster.
pub(super) fn list(cluster: &str) -> Vec<u32> {
    let variable = format!("{VARIABLE}={cluster}");
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

/// Stops the kind process of a cluster: SIGTERM, then SIGKILL. Its children exit when their work is
/// done or their container is removed.
pub(super) async fn stop(cluster: &str) {
    for signal in [Signal::TERM, Signal::KILL] {
        for _ in 0..50 {
            let leaders: Vec<u32> = list(cluster).into_iter().filter(|pid| is_group_leader(*pid)).collect();
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
        let mut kind = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .env(VARIABLE, &cluster)
            .process_group(0)
            .spawn()
            .unwrap();
        while list(&cluster).len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(list("kind-processes").is_empty());
        stop(&cluster).await;
        assert!(kind.wait().unwrap().code().is_none());
        let left = list(&cluster);
        assert!(matches!(left[..], [child] if child != kind.id()), "{left:?}");
        rustix::process::kill_process(Pid::from_raw(left[0] as i32).unwrap(), Signal::KILL).unwrap();
    }
}
