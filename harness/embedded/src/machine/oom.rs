//! Whom the kernel kills when memory runs out (mm/oom_kill.c).

use super::cost::PROCESS_KERNEL;
use super::groups::GroupId;
use super::kernel::Kernel;
use super::process::{KILLED, Pid, Process};
use super::{CgroupVersion, Happened};

/// `OOM_SCORE_ADJ_MIN`: such processes are never killed.
const NEVER: i32 = -1000;
/// What the kernel counts in.
const PAGE: i64 = 4096;

impl Kernel {
    /// Kills for want of memory within a group. The answer is whether somebody was killed.
    pub fn out_of_memory(&mut self, group: GroupId) -> bool {
        let total = self.groups.limit(group).unwrap_or_else(|| self.groups.total());
        let Some(victim) = self.victim(group, total) else { return false };
        let Some(container) = self.processes.get(&victim).map(|process| process.container) else {
            return false;
        };
        // memory.oom.group is a file of cgroup v2 only; the kubelet writes it since 1.28 (kubernetes/kubernetes#117793).
        let whole = self.cgroup == CgroupVersion::V2 && self.containers[&container].spec.oom_group;
        let mut killed = vec![victim];
        if whole {
            killed.extend(self.containers[&container].members.iter().copied().filter(|pid| *pid != victim));
            // The first process goes last: with it the container ends.
            killed.sort_unstable_by_key(|pid| std::cmp::Reverse(*pid));
        }
        for pid in killed {
            let Some(process) = self.processes.get(&pid) else { continue };
            let name = process.name.clone();
            let Some(container) = self.containers.get_mut(&process.container) else { continue };
            container.oom_killed = true;
            let container = container.id.clone();
            self.happened.push(Happened::OomKilled { process: name, pid, container, at: self.now });
            self.exit(pid, KILLED);
        }
        true
    }

    /// The process with the most points (`oom_badness`); of equals, the last one.
    fn victim(&self, group: GroupId, total: u64) -> Option<Pid> {
        let total = (total / PAGE as u64) as i64;
        self.processes
            .iter()
            .filter(|(_, process)| {
                let container = &self.containers[&process.container];
                container.group.is_some_and(|of| self.groups.within(of, group))
            })
            .filter_map(|(pid, process)| {
                let adjustment = self.containers[&process.container].spec.oom_score_adj;
                (adjustment > NEVER).then(|| (points(process, adjustment, total), *pid))
            })
            .max()
            .map(|(_, pid)| pid)
    }
}

/// Pages of memory and of page tables, and the adjustment in thousandths of all there is.
fn points(process: &Process, adjustment: i32, total: i64) -> i64 {
    let page_tables = process.kernel.saturating_sub(PROCESS_KERNEL);
    let pages = (process.anon + page_tables) as i64 / PAGE;
    pages + i64::from(adjustment) * (total / 1000)
}
