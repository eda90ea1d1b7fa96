//! Whether the kernel's notice of memory pressure reaches a kubelet that was just started.

/// How the eviction manager says that it begins (`pkg/kubelet/eviction/eviction_manager.go`, the same from 1.31 to 1.36).
const BEGINS: &str = "Eviction manager: starting control loop";
/// How it says that it could not look at the node.
const BLIND: &str = "Eviction manager: failed to get summary stats";

/// Whether a kubelet, by its log, has no notice yet: it asks for one with the statistics of its first look, and where it had none, because it did not know its
/// own node yet, only when it looks again after 10 s.
pub fn is_late(log: &[String]) -> bool {
    let begun = log.iter().rposition(|line| line.contains(BEGINS));
    begun.is_some_and(|at| log[at..].iter().any(|line| line.contains(BLIND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_late_where_the_manager_that_runs_saw_nothing_at_first() {
        let begins = r#"I1122 12:18:02.126717 1426 eviction_manager.go:189] "Eviction manager: starting control loop""#;
        let blind = r#"E1122 12:18:02.136053 1426 eviction_manager.go:285] "Eviction manager: failed to get summary stats" err="failed to get node info""#;
        let late = |lines: &[&str]| is_late(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert!(late(&[begins, "another", blind]));
        assert!(!late(&[begins, "another"]));
        assert!(!late(&[begins, blind, begins]), "that was the kubelet before");
        assert!(!late(&[blind]), "its beginning is not in the log");
    }
}
