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
static OLD_RESOURCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:attempting|must evict pod\(s\)) to reclaim (?<name>[a-z-]+)")
        .expect("the pattern is valid")
});
static RESOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\bresourceName="?(?<name>[a-z-]+)"#).expect("the pattern is valid"));
/// The error of a line.
static ERROR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\berr="(?<error>[^"]*)""#).expect("the pattern is valid"));

/// Words of lines that state that the node was under pressure.
const PRESSURE: [&str; 5] = [
    "attempting to reclaim",
    "must evict pod",
    "reduce resource pressure",
    "thresholds have been met",
    "unable to evict any pods",
];

/// An eviction that the kubelet's log states.
pub(crate) struct LoggedEviction {
    /// `namespace/name`.
    pub pod: String,
    /// Name of the node, if the log has it.
    pub node: Option<String>,
    /// The cause in sentences.
    pub why: Vec<String>,
    /// The place in the order of eviction, in a sentence, if the log has it.
    pub rank: Option<String>,
}

impl LoggedEviction {
    fn of(pod: String, node: Option<&str>) -> Self {
        Self { pod, node: node.map(str::to_owned), why: Vec::new(), rank: None }
    }
}

/// Returns the pods of the list in a line, with or without quotes.
fn pod_list(pairs: &str) -> Vec<String> {
    let pods = PODS.captures(pairs).map(|found| found["pods"].to_owned()).unwrap_or_default();
    let names = pods.split([' ', ',']).map(|name| name.trim_matches('"').to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// The evictions in the kubelet's log.
#[derive(Default)]
pub(crate) struct KubeletLog {
    resource: Option<String>,
    ranked: Vec<String>,
    evicted: Vec<LoggedEviction>,
    /// Critical pods that were not evicted.
    spared: Vec<LoggedEviction>,
    /// Name of the node, if the ranking has it.
    node: Option<String>,
    /// The last line about pressure of the node.
    pressure: Option<String>,
}

impl KubeletLog {
    /// Reads a line; returns whether it is one of the eviction manager.
    pub(crate) fn read(&mut self, line: &str, node: Option<&str>) -> bool {
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
                self.ranked = pod_list(pairs).into_iter().chain(old_pods).collect();
                self.node = node.map(str::to_owned);
            }
            // The evicted pods, before and after their clean-up.
            _ if text.contains("cleaned up") => {
                for pod in pod_list(pairs).into_iter().chain(old_pods) {
                    self.add_evicted(pod, node);
                }
            }
            pod if text.contains("is evicted successfully") => {
                let Some(pod) = pod.or_else(|| old_pods.next()) else { return true };
                self.add_evicted(pod, node);
            }
            pod if text.contains("failed to evict") => {
                let Some(pod) = pod.or_else(|| old_pods.next()) else { return true };
                let error = ERROR.captures(pairs).map(|found| format!(": {}", &found["error"]));
                let why = format!(
                    "The kubelet chose the pod for eviction{}, and failed to terminate it, as its log states{}.",
                    self.purpose(),
                    error.unwrap_or_default()
                );
                self.evicted.push(LoggedEviction { why: vec![why], ..LoggedEviction::of(pod, node) });
            }
            pod if text.contains("cannot evict a critical pod") => {
                let Some(pod) = pod.or_else(|| old_pods.next()) else { return true };
                let why = format!(
                    "The kubelet did not evict the pod{}, as its log states: it is critical, which static pods, \
                     mirror pods and those with a system priority are.",
                    self.purpose()
                );
                self.spared.push(LoggedEviction { why: vec![why], ..LoggedEviction::of(pod, node) });
            }
            _ if PRESSURE.iter().any(|words| text.contains(words)) => {
                let resource = RESOURCE.captures(pairs).map(|found| format!(" ({})", &found["name"]));
                let text = text.trim().trim_end_matches('.');
                self.pressure = Some(format!("{text}{}", resource.unwrap_or_default()));
            }
            _ => {}
        }
        true
    }

    /// Adds an eviction that the log may state several times.
    fn add_evicted(&mut self, pod: String, node: Option<&str>) {
        if !self.evicted.iter().any(|known| known.pod == pod) {
            let eviction = self.evicted(pod, node);
            self.evicted.push(eviction);
        }
    }

    /// The last line that states that the node was under pressure.
    pub(crate) fn pressure(&self) -> Option<String> {
        self.pressure.clone()
    }

    /// The resource that the kubelet reclaims, as a part of a sentence.
    fn purpose(&self) -> String {
        self.resource.as_ref().map(|resource| format!(" to reclaim {resource}")).unwrap_or_default()
    }

    /// The place of a pod in the order of eviction.
    fn rank(&self, pod: &str) -> Option<String> {
        let rank = self.ranked.iter().position(|name| name == pod)?;
        let total = self.ranked.len();
        Some(match &self.ranked[..rank] {
            [] => format!("It was the first of {total} in the order of eviction."),
            before => format!(
                "It was number {} of {total} in the order of eviction; those before it were not evicted, which is \
                 the case for critical pods: {}.",
                rank + 1,
                before.join(", ")
            ),
        })
    }

    fn evicted(&self, pod: String, node: Option<&str>) -> LoggedEviction {
        let rank = self.rank(&pod);
        let why = [
            Some(format!("The kubelet evicted the pod{}, as its log states.", self.purpose())),
            rank.clone(),
            Some(
                "The amounts are in the Evicted event: kubectl get events --field-selector reason=Evicted"
                    .to_owned(),
            ),
        ];
        LoggedEviction { why: why.into_iter().flatten().collect(), rank, ..LoggedEviction::of(pod, node) }
    }

    /// The first pod of a ranking after which the log does not state an eviction.
    fn first_ranked(&self) -> Option<LoggedEviction> {
        let why = format!(
            "The kubelet ranked pods for eviction{}; this was the first of {}. The log does not state that it was \
             evicted: its next lines tell, or kubectl get events --field-selector reason=Evicted",
            self.purpose(),
            self.ranked.len()
        );
        let pod = self.ranked.first()?.to_owned();
        Some(LoggedEviction { why: vec![why], ..LoggedEviction::of(pod, self.node.as_deref()) })
    }

    /// The evicted pods; without one, the pods that were not evicted because they are critical, or
    /// the first that was ranked.
    pub(crate) fn evictions(self) -> Vec<LoggedEviction> {
        let ranked = Vec::from_iter(self.first_ranked());
        [self.evicted, self.spared, ranked].into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }
}
