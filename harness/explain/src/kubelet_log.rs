//! Lines of the kubelet's log.

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
/// The pods and the resource in lines of kubelets before 1.23, as `NAME_NAMESPACE(UID)`.
static OLD_POD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?<name>[a-z0-9][a-z0-9.-]*)_(?<namespace>[a-z0-9-]+)\([^)]*\)")
        .expect("the pattern is valid")
});
static OLD_RESOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^attempting to reclaim (?<name>[a-z-]+)").expect("the pattern is valid"));
static RESOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\bresourceName="?(?<name>[a-z-]+)"#).expect("the pattern is valid"));
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
        if !line.contains("viction manager: ") {
            return false;
        }
        let Some(found) = EVICTION_MANAGER.captures(line) else { return false };
        let pairs = &found["pairs"];
        let text = &found["text"];
        if let Some(resource) = RESOURCE.captures(pairs).or_else(|| OLD_RESOURCE.captures(text)) {
            self.resource = Some(resource["name"].to_owned());
        }
        let mut old_pods =
            OLD_POD.captures_iter(text).map(|found| format!("{}/{}", &found["namespace"], &found["name"]));
        match POD.captures(pairs).map(|found| found["pod"].to_owned()) {
            _ if text.starts_with("pods ranked for eviction") => {
                let pods = PODS.captures(pairs).map(|found| found["pods"].to_owned()).unwrap_or_default();
                let names = pods.split([' ', ',']).map(|name| name.trim_matches('"').to_owned());
                self.ranked = names.filter(|name| !name.is_empty()).chain(old_pods).collect();
            }
            pod if text.contains("is evicted successfully") => {
                let Some(pod) = pod.or_else(|| old_pods.next()) else { return true };
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
