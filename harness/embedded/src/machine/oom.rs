//! The OOM killer (mm/oom_kill.c).

use super::calibration::PROCESS_KERNEL;
use super::ids::{CgroupId, Pid, ROOT_CGROUP};
use super::kernel::{Kernel, Process};
use super::types::MachineEvent;
use crate::options::CgroupVersion;

/// The adjustment of a process that is never killed (`OOM_SCORE_ADJ_MIN`).
const OOM_SCORE_ADJ_MIN: i32 = -1000;
/// The size of a page in bytes.
const PAGE: i64 = 4096;

impl Kernel {
    /// Kills a process in a cgroup, with its container's other processes if `memory.oom.group` is
    /// set, and reports the process. Returns `false` if no process may be killed.
    pub(super) fn oom_kill(&mut self, group: CgroupId) -> bool {
        let total = self.cgroups.limit(group).unwrap_or_else(|| self.cgroups.total());
        let Some(victim) = self.select_victim(group, total) else { return false };
        let Some(chosen) = self.processes.get(&victim) else { return false };
        let Some(container) = self.containers.get(&chosen.container) else { return false };
        self.events.push(MachineEvent::OomKilled {
            process: chosen.name.clone(),
            pid: victim.0,
            container: container.id.clone(),
            is_of_root: group == ROOT_CGROUP,
        });
        // memory.oom.group exists on cgroup v2. The kubelet writes it since 1.28
        // (kubernetes/kubernetes#117793).
        let mut victims = vec![victim];
        if self.cgroup == CgroupVersion::V2 && container.spec.oom_group {
            victims = container.pids.iter().copied().collect();
            // The container ends with its first process: that one is last.
            victims.sort_unstable_by_key(|pid| std::cmp::Reverse(*pid));
        }
        for pid in victims {
            let Some(process) = self.processes.get(&pid) else { continue };
            let Some(container) = self.containers.get_mut(&process.container) else { continue };
            container.oom_killed = true;
            self.kill(pid);
        }
        true
    }

    /// Returns the process with the highest score (`oom_badness`), and of equals the last one.
    fn select_victim(&self, group: CgroupId, total: u64) -> Option<Pid> {
        let total = (total / PAGE as u64) as i64;
        let scores = self.processes.iter().filter_map(|(pid, process)| {
            let container = &self.containers[&process.container];
            let is_candidate = container.spec.oom_score_adj > OOM_SCORE_ADJ_MIN
                && container.cgroup.is_some_and(|id| self.cgroups.is_within(id, group));
            is_candidate.then(|| (score(process, container.spec.oom_score_adj, total), *pid))
        });
        scores.max().map(|(_, pid)| pid)
    }
}

/// Returns the pages of a process and of its page tables, plus the adjustment in thousandths of
/// `total` pages.
fn score(process: &Process, adjustment: i32, total: i64) -> i64 {
    let page_tables = process.kernel.saturating_sub(PROCESS_KERNEL);
    let pages = (process.anon + page_tables) as i64 / PAGE;
    pages + i64::from(adjustment) * (total / 1000)
}
