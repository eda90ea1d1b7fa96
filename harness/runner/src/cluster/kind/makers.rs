//! The processes that make or delete a cluster, kind and its `docker` commands: they outlive a killed run, and bring containers while others
//! are being removed.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The variable in the environment of kind, and so of all that it starts; its value is the cluster. A process id in a file would be
/// written a moment after the process began.
pub const VARIABLE: &str = "EVICTLAB_KIND_MAKES";

/// The ids of all processes that make or delete this cluster now, on this machine.
pub fn of(cluster: &str) -> Vec<u32> {
    let mark = format!("{VARIABLE}={cluster}");
    let Ok(processes) = fs::read_dir("/proc") else { return by_ps(&mark) };
    processes
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            // Another user's cannot be read, and is not ours.
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()).then_some(pid)
        })
        .collect()
}

/// Stops the kind that makes or deletes this cluster, politely and then by force. Its children end by themselves when their work is done or their
/// container is gone.
pub async fn stop(cluster: &str) {
    for signal in [Signal::TERM, Signal::KILL] {
        for _ in 0..50 {
            let kinds: Vec<u32> = of(cluster).into_iter().filter(|pid| leads(*pid)).collect();
            if kinds.is_empty() {
                return;
            }
            for kind in kinds.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
                // It may have ended by itself.
                let _gone = kill_process(kind, signal);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Whether a process leads its group, as kind does and its children do not.
fn leads(pid: u32) -> bool {
    let id = Pid::from_raw(pid as i32);
    id.is_some() && rustix::process::getpgid(id).ok() == id
}

/// Where there is no `/proc`, `ps` shows environments behind the commands.
fn by_ps(mark: &str) -> Vec<u32> {
    let listed = duct::cmd!("ps", "-A", "-E", "-w", "-w", "-o", "pid=,command=").stderr_null().read();
    let listed = listed.unwrap_or_default();
    let marked = listed.lines().filter(|line| line.split_whitespace().any(|word| word == mark));
    marked.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn the_leader_is_stopped_and_its_children_are_seen() {
        let cluster = format!("makers-test-{}", std::process::id());
        let mut kind = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .env(VARIABLE, &cluster)
            .process_group(0)
            .spawn()
            .unwrap();
        while of(&cluster).len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(of("makers").is_empty());
        stop(&cluster).await;
        assert!(kind.wait().unwrap().code().is_none());
        let left = of(&cluster);
        assert!(matches!(left[..], [child] if child != kind.id()), "{left:?}");
        rustix::process::kill_process(Pid::from_raw(left[0] as i32).unwrap(), Signal::KILL).unwrap();
    }
}
