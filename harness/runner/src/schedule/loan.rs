//! A borrowed node: its kubelet stays as it is, so that cases are fitted to it, and wait as long as it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::parse_grace;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::approach::{Approach, Unsuited, approach};
use super::images::images_of;
use crate::case::{By, Case, Placed, Pressure, Signal, Step};
use crate::cluster::{Borrowed, CORDONED, Node, NodeError};
use crate::reset::{Itself, PATIENCE, own_taints};
use crate::tune::{Difference, differences};

/// How old the statistics of containers may be: cAdvisor looks every 10 to 15 s.
const STALE: Duration = Duration::from_secs(20);
/// `evictionPressureTransitionPeriod`, where 0 stands for it, too.
const TRANSITION: Duration = Duration::from_secs(300);
/// `volumeStatsAggPeriod`.
const VOLUMES: Duration = Duration::from_secs(60);

/// What goes for a node that is somebody else's.
#[derive(Clone, Debug)]
pub struct Loan {
    borrowed: Borrowed,
    configz: Value,
    summary: Value,
    taints: Vec<String>,
    lacks: BTreeMap<String, String>,
    version: KubeletVersion,
    /// What the node's pods may request together of memory, in bytes, if it tells.
    allocatable: Option<u64>,
}

impl Loan {
    /// The least time that pressure takes to the crossing of a threshold: several times the age of the statistics.
    pub const LEAST_RAMP: Duration = Duration::from_secs(60);

    /// What goes for a node; none if it is the run's own.
    pub async fn of(node: &Node) -> Result<Option<Self>, NodeError> {
        let Some(borrowed) = node.machine().borrowed().cloned() else { return Ok(None) };
        let (configz, summary) = (node.configz().await?, node.settled_summary().await?);
        let object = node.object().await?;
        let memory = object.status.as_ref().and_then(|status| status.allocatable.as_ref()?.get("memory"));
        let allocatable = memory.and_then(|memory| bytes(&memory.0.parse().ok()?));
        let (taints, lacks, version) = (own_taints(&object), node.machine().lacks(), node.version.clone());
        Ok(Some(Self { borrowed, configz, summary, taints, lacks, version, allocatable }))
    }

    /// The node when it is itself. Others use its memory, too; pressure that is over is shown for as long as its kubelet is told to.
    pub fn itself(&self) -> Itself {
        let transition = self.period("evictionPressureTransitionPeriod").unwrap_or(TRANSITION);
        Itself { rss: None, taints: self.taints.clone(), patience: PATIENCE + transition }
    }

    /// How much longer than elsewhere nothing may move: statistics come when the kubelet looks.
    pub fn slack(&self) -> Duration {
        STALE + self.period("volumeStatsAggPeriod").unwrap_or(VOLUMES)
    }

    /// Why a case is not for this node, as it was when it was borrowed. `image` gives the full name of a case's image.
    pub fn refuses(&self, case: &Case, image: &dyn Fn(&str) -> String) -> Option<Unsuited> {
        let lacking = images_of(case).into_iter().find_map(|own| self.lacks.get_key_value(&image(&own)));
        match lacking {
            Some((image, why)) => Some(Unsuited::NoImage { image: image.clone(), why: why.clone() }),
            None => self.suits(case, &self.configz, &self.summary).err(),
        }
    }

    /// How a case comes to the node's threshold now; none for one without pressure.
    pub async fn approach(
        &self,
        case: &Case,
        node: &Node,
    ) -> Result<Result<Option<Approach>, Unsuited>, NodeError> {
        if case.pressure.is_none() {
            return Ok(Ok(None));
        }
        Ok(self.suits(case, &node.configz().await?, &node.settled_summary().await?))
    }

    fn suits(&self, case: &Case, configz: &Value, summary: &Value) -> Result<Option<Approach>, Unsuited> {
        let changed = changes(case);
        if !changed.is_empty() {
            return Err(Unsuited::ChangesNode(changed.join(", ")));
        }
        let asks = case.pods.iter().filter_map(|pod| self.request(pod)).sum();
        if let Some(has) = self.allocatable.filter(|has| asks > *has) {
            return Err(Unsuited::NoRoom { asks, has });
        }
        let cordoned = self.taints.iter().any(|taint| taint == CORDONED);
        if cordoned && case.placed == Placed::Scheduled {
            return Err(Unsuited::Cordoned);
        }
        if !case.priority_classes.is_empty() {
            return Err(Unsuited::ClusterWide);
        }
        if case.speaks_of("kubeletLog") {
            return Err(Unsuited::NoLog);
        }
        // What the node has already need not be changed.
        let changed = differences(&case.kubelet_config, configz);
        if !changed.is_empty() {
            let changed = changed.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ");
            return Err(Unsuited::Configuration(changed));
        }
        let Some(pressure) = &case.pressure else { return Ok(None) };
        if let Some(asked) = asked_of_thresholds(pressure) {
            return Err(Unsuited::Configuration(asked.to_owned()));
        }
        let beside = &self.borrowed.beside;
        match &self.borrowed.spared {
            Some(spared) => Err(spared.clone().into()),
            None if pressure.signal != Signal::MemoryAvailable && !beside.is_empty() => {
                Err(Unsuited::Shared { signal: pressure.signal.as_str(), beside: beside.clone() })
            }
            None => approach(pressure, configz, summary, self.borrowed.cap).map(Some),
        }
    }

    /// What a pod of a case requests of memory, in bytes.
    fn request(&self, pod: &Map<String, Value>) -> Option<u64> {
        let pod = Pod::deserialize(pod).ok()?;
        bytes(&pod.request(&self.version, "memory"))
    }

    /// A period of the kubelet's configuration; none where it is not stated, or 0.
    fn period(&self, field: &str) -> Option<Duration> {
        let period = parse_grace(self.configz[field].as_str()?).ok()?;
        (!period.is_zero()).then_some(period)
    }
}

fn bytes(quantity: &Quantity) -> Option<u64> {
    u64::try_from(quantity.value()).ok()
}

/// What a case does to its node, other than starving it.
fn changes(case: &Case) -> Vec<&'static str> {
    let stated = [
        ("its memory is bounded", case.node.memory.is_some()),
        ("resources are added", !case.node.capacity.is_empty()),
        ("static pods", !case.static_pods.is_empty()),
    ];
    let setup = stated.into_iter().filter(|(_, stated)| *stated).map(|(name, _)| name);
    let steps = case.steps.iter().filter(|step| step.changes_node()).flat_map(Step::actions);
    let mut all: Vec<&str> = setup.chain(steps).collect();
    all.dedup();
    all
}

/// What pressure asks of how the node is configured that a threshold of the node's own cannot give.
fn asked_of_thresholds(pressure: &Pressure) -> Option<&'static str> {
    let asked = [
        ("memory is reserved (`by: kube-reserved`)", pressure.by == By::KubeReserved),
        (
            "a hard threshold lies a stated way beside the soft one (`hard-distance`)",
            pressure.hard_distance.is_some(),
        ),
        ("the threshold is a percentage (`as-percentage`)", pressure.as_percentage),
    ];
    asked.into_iter().find_map(|(what, asked)| asked.then_some(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Spared;
    use serde_json::json;

    fn loan(configz: Value, spared: Option<Spared>) -> Loan {
        let summary =
            json!({"node": {"memory": {"availableBytes": 1000u64 << 20, "workingSetBytes": 7000u64 << 20}}});
        Loan {
            borrowed: Borrowed { spared, beside: vec![], cap: 2048 << 20 },
            configz,
            summary,
            taints: vec![],
            lacks: [("full/mine".to_owned(), "ErrImagePull".to_owned())].into(),
            version: KubeletVersion::minor(32),
            allocatable: Some(1000 << 20),
        }
    }

    fn case(more: &str) -> Case {
        let pods = if more.starts_with("pods:") { "" } else { "pods: [], " };
        serde_yaml::from_str(&format!("{{name: a, about: b, expect: {{}}, {pods}{more}}}")).unwrap()
    }

    #[test]
    fn a_case_is_refused_for_what_it_would_do() {
        let hard = json!({"evictionHard": {"memory.available": "500Mi"}, "evictionMaxPodGracePeriod": 3});
        let fit = loan(hard.clone(), None);
        let spared = loan(hard, Some(Spared::NotAllowed));
        let refused = |loan: &Loan, more: &str| {
            loan.refuses(&case(more), &|name| format!("full/{name}")).map(|why| why.to_string())
        };
        let pressure = "pressure: {signal: memory.available}";
        assert_eq!(refused(&fit, pressure), None);
        assert_eq!(refused(&spared, "labels: [Slow]"), None, "it starves nobody");
        assert!(refused(&spared, pressure).unwrap().contains("takes --allow-disruption"));
        assert_eq!(
            refused(&fit, "kubelet-config: {evictionMaxPodGracePeriod: 3}"),
            None,
            "the node has that"
        );
        let why = refused(&fit, "kubelet-config: {evictionMaxPodGracePeriod: 5}").unwrap();
        assert!(
            why.contains(
                "not done on an existing cluster: evictionMaxPodGracePeriod: 5 was asked for, 3 is in force"
            ),
            "{why}"
        );
    }

    #[test]
    fn what_is_others_too_is_not_starved() {
        let disk = json!({"evictionHard": {"nodefs.available": "10%", "memory.available": "500Mi"}});
        let mut loan = loan(disk, None);
        loan.borrowed.beside = vec!["control-plane".to_owned()];
        let refused =
            |signal: &str| loan.refuses(&case(&format!("pressure: {{signal: {signal}}}")), &str::to_owned);
        let why = refused("nodefs.available").unwrap().to_string();
        assert!(why.contains("of nodefs.available, which this one shares with control-plane"), "{why}");
        assert_eq!(refused("memory.available"), None, "that is the node's own");
    }

    #[test]
    fn nothing_but_namespaces_is_changed() {
        let loan = loan(json!({}), None);
        let rows = [
            ("node: {memory: 1Gi}", "it changes the node (its memory is bounded), which is not done"),
            (
                "do: [{taint: {key: a, effect: NoExecute}}, {untaint: a}, {evict: p}]",
                "changes the node (taint, untaint)",
            ),
            ("static-pods: [{}]", "changes the node (static pods)"),
            ("priority-classes: {high: 1000}", "makes priority classes, which are the whole cluster's"),
            ("until: 'kubeletLog.size() > 0'", "reads the kubelet's log"),
            (
                "pods: [{spec: {containers: [{name: a, resources: {requests: {memory: 600Mi}}}]}}, {spec: {containers: [{name: a, resources: {requests: {memory: 401Mi}}}]}}]",
                "its pods ask for 1001Mi of memory, and the node has 1000Mi to give",
            ),
            ("pressure: {signal: pid.available}", "starves a node of pid.available"),
            (
                "pressure: {signal: memory.available, by: kube-reserved}",
                "needs to change the kubelet's configuration, which is not done on an existing cluster: memory is reserved",
            ),
            (
                "pressure: {signal: memory.available, soft-grace: 3s, hard-distance: 1Gi}",
                "beside the soft one",
            ),
            ("pressure: {signal: memory.available, as-percentage: true}", "the threshold is a percentage"),
            (
                "objects: [{kind: Job, spec: {template: {spec: {containers: [{image: mine}]}}}}]",
                "has no image full/mine and cannot pull it: ErrImagePull",
            ),
        ];
        for (more, says) in rows {
            let why = loan.refuses(&case(more), &|name| format!("full/{name}"));
            assert!(why.as_ref().is_some_and(|why| why.to_string().contains(says)), "{more}: {why:?}");
        }
        assert_eq!(loan.refuses(&case("do: [{evict: p}, {create: {kind: Pod}}]"), &str::to_owned), None);
    }

    #[test]
    fn waits_follow_the_nodes_own_periods() {
        let rows = [
            (json!({}), 390, 80),
            (json!({"evictionPressureTransitionPeriod": "0s", "volumeStatsAggPeriod": "0s"}), 390, 80),
            (json!({"evictionPressureTransitionPeriod": "30s", "volumeStatsAggPeriod": "1m30s"}), 120, 110),
        ];
        for (configz, patience, slack) in rows {
            let loan = loan(configz, None);
            assert_eq!((loan.itself().patience.as_secs(), loan.slack().as_secs()), (patience, slack));
        }
    }
}
