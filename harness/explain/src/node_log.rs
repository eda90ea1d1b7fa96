//! Lines of the kubelet's log and of the kernel's.

use std::sync::LazyLock;

use regex::Regex;

/// A line of the eviction manager (`pkg/kubelet/eviction/eviction_manager.go`).
static EVICTION_MANAGER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"eviction_manager\.go:\d+\] "?[Ee]viction manager: (?<text>[^"]*)"?(?<pairs>.*)$"#)
        .expect("the pattern is valid")
});
static POD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\bpod="?(?<pod>[^" \]]+)"#).expect("the pattern is valid"));
static PODS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bpods=\[(?<pods>[^\]]*)\]").expect("the pattern is valid"));
static RESOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\bresourceName="?(?<name>[a-z-]+)"#).expect("the pattern is valid"));
/// `mm/oom_kill.c`, `__oom_kill_process`.
static OOM_KILL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?<scope>Memory cgroup out of memory|Out of memory)[^:]*: (?:Killed|Kill) process (?<pid>\d+) \((?<name>[^)]*)\)(?:.*?anon-rss:(?<rss>\d+)kB)?",
    )
    .expect("the pattern is valid")
});
/// The event of the kubelet's OOM watcher (`pkg/kubelet/oom`).
static SYSTEM_OOM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"System OOM encountered, victim process: (?<name>[^,]*), pid: (?<pid>\d+)")
        .expect("the pattern is valid")
});

/// The evictions in the kubelet's log.
#[derive(Default)]
pub(crate) struct KubeletLog {
    resource: Option<String>,
    ranked: Vec<String>,
    evicted: Vec<(String, Vec<String>)>,
}

impl KubeletLog {
    /// Reads a line; returns whether it is one of the eviction manager.
    pub(crate) fn read(&mut self, line: &str) -> bool {
        let Some(found) = EVICTION_MANAGER.captures(line) else { return false };
        let pairs = &found["pairs"];
        if let Some(resource) = RESOURCE.captures(pairs) {
            self.resource = Some(resource["name"].to_owned());
        }
        let pod = POD.captures(pairs).map(|found| found["pod"].to_owned());
        let text = &found["text"];
        match (text, pod) {
            (text, _) if text.starts_with("pods ranked for eviction") => {
                let pods = PODS.captures(pairs).map(|found| found["pods"].to_owned()).unwrap_or_default();
                let names = pods.split([' ', ',']).map(|name| name.trim_matches('"').to_owned());
                self.ranked = names.filter(|name| !name.is_empty()).collect();
            }
            (text, Some(pod)) if text.starts_with("pod is evicted successfully") => {
                let why = self.describe(&pod);
                self.evicted.push((pod, why));
            }
            _ => {}
        }
        true
    }

    fn describe(&self, pod: &str) -> Vec<String> {
        let mut why = vec![match self.resource.as_deref() {
            Some(resource) => {
                format!("The kubelet evicted the pod to reclaim {resource}, as its log states.")
            }
            None => "The kubelet evicted the pod, as its log states.".to_owned(),
        }];
        if let Some(rank) = self.ranked.iter().position(|name| name == pod) {
            let before = &self.ranked[..rank];
            let total = self.ranked.len();
            why.push(match before {
                [] => format!("It was the first of {total} in the order of eviction."),
                _ => format!(
                    "It was number {} of {total} in the order of eviction; those before it were not evicted, \
                     which is the case for critical pods: {}.",
                    rank + 1,
                    before.join(", ")
                ),
            });
        }
        why.push(
            "The amounts are in the Evicted event: kubectl get events --field-selector reason=Evicted"
                .to_owned(),
        );
        why
    }

    /// The evicted pods, `namespace/name`, with the cause.
    pub(crate) fn evictions(self) -> Vec<(String, Vec<String>)> {
        self.evicted
    }
}

/// Explains a line about an OOM kill of the kernel or of the kubelet's OOM watcher.
pub(crate) fn kernel_oom_kill(line: &str) -> Option<Vec<String>> {
    let (name, pid, where_) = match (OOM_KILL.captures(line), SYSTEM_OOM.captures(line)) {
        (Some(found), _) => {
            let scope = match &found["scope"] {
                "Out of memory" => "the node had no memory left, before the kubelet noticed",
                _ => "a container, a pod, or all pods reached the memory limit of their cgroup",
            };
            let usage = found.name("rss").and_then(|kib| kib.as_str().parse::<u64>().ok());
            let usage = usage.map(|kib| format!(" It used {} MiB.", kib >> 10)).unwrap_or_default();
            (found["name"].to_owned(), found["pid"].to_owned(), format!("{scope}.{usage}"))
        }
        (None, Some(found)) => {
            let scope = "the node had no memory left, before the kubelet noticed.".to_owned();
            (found["name"].to_owned(), found["pid"].to_owned(), scope)
        }
        (None, None) => return None,
    };
    Some(vec![
        format!("The kernel OOM-killed the process {name} (PID {pid}): {where_}"),
        "An OOM kill is not an eviction: the pod stays on its node, and the container may be restarted. The \
         lines before it in the kernel's log name the cgroup (oom-kill:… task_memcg=…)."
            .to_owned(),
    ])
}
