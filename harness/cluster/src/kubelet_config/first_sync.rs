//! Detects in the kubelet log that memory notifications start late.

/// Log message at the start of the eviction manager
/// (`pkg/kubelet/eviction/eviction_manager.go`, 1.31 to 1.36).
const START: &str = "Eviction manager: starting control loop";
/// Log message of a synchronization without statistics.
const NO_STATS: &str = "Eviction manager: failed to get summary stats";

/// Returns whether the first synchronization of the running eviction manager had no statistics.
///
/// The eviction manager registers for memory notifications of the kernel with the statistics of a
/// synchronization. If the first one fails, because the kubelet does not know its node yet, the
/// notifications start 10 s later.
pub fn missed_first_sync(log: &[String]) -> bool {
    let start = log.iter().rposition(|line| line.contains(START));
    start.is_some_and(|start| log[start..].iter().any(|line| line.contains(NO_STATS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_a_failed_first_sync_of_the_last_start() {
        let start = r#"I1122 12:18:02.126717 1426 eviction_manager.go:189] "Eviction manager: starting control loop""#;
        let no_stats = r#"E1122 12:18:02.136053 1426 eviction_manager.go:285] "Eviction manager: failed to get summary stats" err="failed to get node info""#;
        let missed = |lines: &[&str]| {
            missed_first_sync(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
        };
        assert!(missed(&[start, "another", no_stats]));
        assert!(!missed(&[start, "another"]));
        assert!(!missed(&[start, no_stats, start]), "the failure belongs to the previous kubelet");
        assert!(!missed(&[no_stats]), "the log has no start");
    }
}
