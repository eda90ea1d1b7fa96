//! Policy of external nodes: their kubelets are not reconfigured, and cases that would do more than
//! create namespaces are skipped.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_case::expression::Variable;
use evictlab_case::{Action, Case, NodeSetup, PodPlacement, Pressure, PressureMechanism, PressureSignal};
use evictlab_cluster::kubelet_config::{Difference, differences};
use evictlab_cluster::{CORDONED, ExternalNode, Node, NodeError, PressureForbidden, system_taints};
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::{KubeletVersion, parse_go_duration};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::node_access::pod_bounds::PodBounds;
use crate::node_setup::images::images_of;
use crate::pressure::plan::{PressurePlan, plan_pressure};
use crate::pressure::room::{Amounts, NodeRoom};
use crate::recovery::verify_recovered::{NodeBaseline, RECOVERY_PROGRESS_TIMEOUT};
use crate::skip_reason::SkipReason;

/// Maximum age of container statistics: cAdvisor updates them every 10 to 15 s.
const MAX_STATS_AGE: Duration = Duration::from_secs(20);
/// Memory and disk above its thresholds that a node keeps beside the limits of the pods, for other
/// processes.
const ROOM_MARGIN: u64 = 128 * MIB;
/// Default of `evictionPressureTransitionPeriod`; the kubelet also applies it for 0.
const DEFAULT_TRANSITION_PERIOD: Duration = Duration::from_secs(300);
/// Default of `volumeStatsAggPeriod`.
const DEFAULT_VOLUME_STATS_PERIOD: Duration = Duration::from_secs(60);

/// Policy of an external node, with the node's state at the start of the run.
#[derive(Clone, Debug)]
pub(crate) struct NodePolicy {
    external: ExternalNode,
    configz: Value,
    summary: Value,
    taints: Vec<String>,
    /// Images that the node cannot pull, with the kubelet's message.
    unavailable_images: BTreeMap<String, String>,
    version: KubeletVersion,
    /// Allocatable memory, in bytes; `None` if the node does not report it.
    allocatable_memory: Option<u64>,
}

/// Reason why no pressure was planned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    /// The case does not fit the node.
    #[error(transparent)]
    Skip(#[from] SkipReason),
    /// The node could not be read.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl NodePolicy {
    /// Minimum time to the crossing of a threshold: several times the age of the statistics.
    pub(crate) const MIN_RAMP_DURATION: Duration = Duration::from_secs(60);

    /// Reads the policy of a node; `None` if evictlab created the node.
    pub(crate) async fn of(node: &Node) -> Result<Option<Self>, NodeError> {
        let Some(external) = node.backend().external().cloned() else { return Ok(None) };
        let (configz, mut summary) = (node.configz().await?, node.settled_summary().await?);
        // Most of the Summary, which no plan reads: a run may have 1,000 nodes.
        if let Some(fields) = summary.as_object_mut() {
            fields.remove("pods");
        }
        let object = node.object().await?;
        let memory = object.status.as_ref().and_then(|status| status.allocatable.as_ref()?.get("memory"));
        let allocatable_memory = memory.and_then(|memory| bytes(&memory.0.parse().ok()?));
        Ok(Some(Self {
            external,
            configz,
            summary,
            taints: system_taints(&object),
            unavailable_images: node.backend().unavailable_images(),
            version: node.version.clone(),
            allocatable_memory,
        }))
    }

    /// Returns the baseline for recoveries. Memory is not compared, because other workloads run on
    /// the node; pressure conditions remain for the kubelet's transition period.
    pub(crate) fn baseline(&self) -> NodeBaseline {
        let transition = self.period("evictionPressureTransitionPeriod").unwrap_or(DEFAULT_TRANSITION_PERIOD);
        NodeBaseline {
            rss: None,
            taints: self.taints.clone(),
            progress_timeout: RECOVERY_PROGRESS_TIMEOUT + transition,
        }
    }

    /// Returns the time to add to progress timeouts: the node's statistics change only this often.
    pub(crate) fn stats_delay(&self) -> Duration {
        MAX_STATS_AGE + self.period("volumeStatsAggPeriod").unwrap_or(DEFAULT_VOLUME_STATS_PERIOD)
    }

    /// Returns the reason to skip a case, by the node's state at the start of the run. `full_name`
    /// returns the full name of a case's image.
    pub(crate) fn skip_reason(&self, case: &Case, full_name: &dyn Fn(&str) -> String) -> Option<SkipReason> {
        let unavailable =
            images_of(case).iter().find_map(|image| self.unavailable_images.get_key_value(&full_name(image)));
        match unavailable {
            Some((image, why)) => Some(SkipReason::NoImage { image: image.clone(), why: why.clone() }),
            None => self.check_and_plan(case, &self.configz, &self.summary).err(),
        }
    }

    /// Returns whether a case may put the node under pressure: it states so, its pods have no
    /// limits or preempt others, or their limits are more than the node had left at the start of
    /// the run.
    pub(crate) fn may_cause_pressure(&self, case: &Case) -> bool {
        self.pressure_cause(case, PodBounds::of(case)).is_some()
    }

    /// Returns the room of the node by a Summary.
    ///
    /// # Errors
    /// The Summary does not report the memory or nodefs.
    pub(crate) fn room(&self, summary: &Value) -> Result<NodeRoom, SkipReason> {
        NodeRoom::of(&self.configz, summary)
    }

    /// Returns the memory and disk, in bytes, that cases without pressure may take together; 0 if
    /// the node does not report what it has left.
    pub(crate) fn budget(&self) -> Amounts {
        let Ok(room) = self.room(&self.summary) else { return Amounts::default() };
        let left = |room: u64| room.saturating_sub(ROOM_MARGIN);
        Amounts { memory: left(room.memory), disk: left(room.disk) }
    }

    /// Returns whether pressure is allowed although pods of others run on the node.
    pub(crate) fn allows_other_pods(&self) -> bool {
        self.external.allow_other_pods
    }

    /// Returns the maximum memory or disk that a case may take, in bytes.
    pub(crate) fn max_pressure_bytes(&self) -> u64 {
        self.external.max_pressure_bytes
    }

    /// Plans the pressure of a case by the node's current state; `None` for a case without
    /// pressure. Checks that the node still has room for a case that must not put it under
    /// pressure.
    pub(crate) async fn plan_for_current_state(
        &self,
        case: &Case,
        node: &Node,
    ) -> Result<Option<PressurePlan>, PlanError> {
        let may_cause_pressure = self.may_cause_pressure(case);
        if may_cause_pressure && !self.external.allow_other_pods {
            let others = node.other_pods().await?;
            if !others.is_empty() {
                let cause = "the case puts a node under pressure".to_owned();
                let forbidden = PressureForbidden::InUse(others);
                return Err(SkipReason::PressureForbidden { cause, forbidden }.into());
            }
        }
        if !may_cause_pressure {
            let room = self.room(&node.settled_summary().await?)?;
            room.check(PodBounds::of(case).limits, 0)?;
        }
        if case.pressure.is_none() {
            return Ok(None);
        }
        Ok(self.check_and_plan(case, &node.configz().await?, &node.settled_summary().await?)?)
    }

    fn check_and_plan(
        &self,
        case: &Case,
        configz: &Value,
        summary: &Value,
    ) -> Result<Option<PressurePlan>, SkipReason> {
        self.check_unchanged(case, configz)?;
        if let Some(needed) = case.pressure.as_ref().and_then(needed_configuration) {
            return Err(SkipReason::Configuration(needed.to_owned()));
        }
        self.check_pods(case)?;
        let Some(pressure) = &case.pressure else { return Ok(None) };
        let (signal, shared_with) = (pressure.signal, &self.external.shared_kernel_nodes);
        let is_of_kernel = match signal {
            PressureSignal::MemoryAvailable => false,
            PressureSignal::NodefsAvailable
            | PressureSignal::NodefsInodesFree
            | PressureSignal::ImagefsAvailable
            | PressureSignal::ImagefsInodesFree
            | PressureSignal::PidAvailable => true,
        };
        if is_of_kernel && !shared_with.is_empty() {
            return Err(SkipReason::SharedResource { signal, shared_with: shared_with.to_vec() });
        }
        plan_pressure(pressure, configz, summary, self.external.max_pressure_bytes).map(Some)
    }

    /// Checks that a case fits the node without any change of the node, the cluster or the kubelet.
    fn check_unchanged(&self, case: &Case, configz: &Value) -> Result<(), SkipReason> {
        let changes = node_changes(case);
        if !changes.is_empty() {
            return Err(SkipReason::ChangesNode(changes.join(", ")));
        }
        if case.steps.iter().any(|step| step.action.as_ref().is_some_and(runs_command)) {
            return Err(SkipReason::RunsCommands);
        }
        let requests = case.pods.iter().filter_map(|pod| self.memory_request(pod));
        let requested = requests.fold(0, u64::saturating_add);
        if let Some(allocatable) = self.allocatable_memory.filter(|allocatable| requested > *allocatable) {
            return Err(SkipReason::InsufficientMemory { requested, allocatable });
        }
        let is_cordoned = self.taints.iter().any(|taint| taint == CORDONED);
        if is_cordoned && case.placed == PodPlacement::Scheduled {
            return Err(SkipReason::Cordoned);
        }
        if !case.priority_classes.is_empty() || !case.runtime_classes.is_empty() {
            return Err(SkipReason::ClusterScoped);
        }
        if case.references(Variable::KubeletLog) {
            return Err(SkipReason::NoKubeletLog);
        }
        if let Some((field, _)) = case.kubelet_config.iter().find(|(_, value)| value.is_null()) {
            return Err(SkipReason::Configuration(format!("{field}: the default")));
        }
        // Fields that already have the value of the case need no change.
        let differences = differences(&case.kubelet_config, configz);
        if !differences.is_empty() {
            let differences: Vec<String> = differences.iter().map(Difference::to_string).collect();
            return Err(SkipReason::Configuration(differences.join("; ")));
        }
        Ok(())
    }

    /// Checks that the user allowed what the pods of a case can do to the node: by the pressure
    /// that the case states, and by the manifests alone.
    fn check_pods(&self, case: &Case) -> Result<(), SkipReason> {
        let mut bounds = PodBounds::of(case);
        if let Some(privilege) = bounds.privilege.take().filter(|_| !self.external.allow_privileged) {
            return Err(SkipReason::Privileged(privilege));
        }
        let (limits, cap) = (bounds.limits.memory.max(bounds.limits.disk), self.external.max_pressure_bytes);
        if case.pressure.is_none() && limits > cap {
            return Err(SkipReason::LimitsOverCap { limits, cap });
        }
        if let Some(forbidden) = &self.external.pressure_forbidden
            && let Some(cause) = self.pressure_cause(case, bounds)
        {
            return Err(SkipReason::PressureForbidden { cause, forbidden: forbidden.clone() });
        }
        Ok(())
    }

    /// Returns why a case may put the node under pressure, or preempt pods of others.
    fn pressure_cause(&self, case: &Case, bounds: PodBounds) -> Option<String> {
        if case.pressure.is_some() {
            return Some("the case puts a node under pressure".to_owned());
        }
        let unlimited = bounds.unlimited.map(|why| format!("{why} and could put the node under pressure"));
        let preempts = || bounds.preempts.map(|why| format!("{why} and could preempt other pods"));
        let preempts_by_default = || {
            let preempts = self.external.scheduled_pods_preempt && case.placed == PodPlacement::Scheduled;
            preempts.then(|| {
                "the scheduler gives its pods the default priority class of the cluster, and could preempt other pods for them".to_owned()
            })
        };
        let over_room = || {
            let room = self.room(&self.summary);
            room.and_then(|room| room.check(bounds.limits, ROOM_MARGIN)).err().map(|why| why.to_string())
        };
        unlimited.or_else(preempts).or_else(preempts_by_default).or_else(over_room)
    }

    /// Returns the memory request of a pod of a case, in bytes.
    fn memory_request(&self, pod: &Map<String, Value>) -> Option<u64> {
        let pod = Pod::deserialize(pod).ok()?;
        bytes(&pod.request(&self.version, "memory"))
    }

    /// Returns a period of the kubelet's configuration; `None` if it is absent or 0.
    fn period(&self, field: &str) -> Option<Duration> {
        let period = Duration::try_from(parse_go_duration(self.configz.get(field)?.as_str()?).ok()?).ok()?;
        (!period.is_zero()).then_some(period)
    }
}

fn bytes(quantity: &Quantity) -> Option<u64> {
    u64::try_from(quantity.value()).ok()
}

/// Returns the changes of a case to its node other than pressure.
fn node_changes(case: &Case) -> Vec<&'static str> {
    // Huge pages and swap are those of the host, or the case is skipped.
    let NodeSetup { memory, huge_pages: _, swap: _, capacity, unused_image, file_systems } = &case.node;
    let setup = [
        ("memory limit", memory.is_some()),
        ("file systems", file_systems.is_some()),
        ("unused image", unused_image.is_some()),
        ("extended resources", !capacity.is_empty()),
        ("static pods", !case.static_pods.is_empty()),
    ];
    let setup = setup.into_iter().filter(|(_, stated)| *stated).map(|(name, _)| name);
    let steps = case.steps.iter().filter_map(|step| step.action.as_ref());
    let steps = steps.filter(|action| changes_node(action)).map(Action::field);
    let mut changes: Vec<&str> = setup.chain(steps).collect();
    changes.dedup();
    changes
}

/// Returns whether an action changes the node.
fn changes_node(action: &Action) -> bool {
    match action {
        Action::Node(_) => true,
        Action::Api(_) | Action::ReadLogs(_) | Action::Exec(_) => false,
    }
}

/// Returns whether an action runs a command in a container.
fn runs_command(action: &Action) -> bool {
    match action {
        Action::Exec(_) => true,
        Action::Api(_) | Action::Node(_) | Action::ReadLogs(_) => false,
    }
}

/// Returns a requirement of the pressure that only a reconfigured kubelet meets.
fn needed_configuration(pressure: &Pressure) -> Option<&'static str> {
    let requirements = [
        ("resources are reserved (`by: kube-reserved`)", pressure.by == PressureMechanism::KubeReserved),
        (
            "the hard threshold has a stated distance beside the soft one (`hard-distance`)",
            pressure.hard_distance.is_some(),
        ),
        ("the threshold is a percentage (`as-percentage`)", pressure.as_percentage),
        ("other signals have thresholds, too (`also`)", !pressure.also.is_empty()),
    ];
    requirements.into_iter().find_map(|(requirement, is_needed)| is_needed.then_some(requirement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn policy(configz: Value, forbidden: Option<PressureForbidden>) -> NodePolicy {
        let summary = json!({"node": {
            "memory": {"availableBytes": 1000u64 << 20, "workingSetBytes": 7000u64 << 20},
            "fs": {"availableBytes": 10u64 << 30, "capacityBytes": 100u64 << 30},
        }});
        NodePolicy {
            external: ExternalNode {
                pressure_forbidden: forbidden,
                shared_kernel_nodes: Arc::default(),
                allow_other_pods: false,
                allow_privileged: false,
                max_pressure_bytes: 2048 << 20,
                scheduled_pods_preempt: false,
            },
            configz,
            summary,
            taints: vec![],
            unavailable_images: [("full/mine".to_owned(), "ErrImagePull".to_owned())].into(),
            version: KubeletVersion::from_minor(32),
            allocatable_memory: Some(1000 << 20),
        }
    }

    fn case(more: &str) -> Case {
        let pods = if more.starts_with("pods:") { "" } else { "pods: [], " };
        serde_saphyr::from_str(&format!("{{name: a, about: b, expect: {{}}, {pods}{more}}}")).unwrap()
    }

    #[test]
    fn skips_cases_that_need_another_configuration_or_forbidden_pressure() {
        let hard = json!({"evictionHard": {"memory.available": "500Mi"}, "evictionMaxPodGracePeriod": 3});
        let allowed = policy(hard.clone(), None);
        let forbidden = policy(hard, Some(PressureForbidden::NotAllowed));
        let skipped = |policy: &NodePolicy, more: &str| {
            policy.skip_reason(&case(more), &|name| format!("full/{name}")).map(|why| why.to_string())
        };
        let pressure = "pressure: {signal: memory.available}";
        assert_eq!(skipped(&allowed, pressure), None);
        assert_eq!(skipped(&forbidden, "labels: [Slow]"), None, "the case has no pressure");
        assert!(skipped(&forbidden, pressure).unwrap().contains("requires --allow-disruption"));
        assert_eq!(
            skipped(&allowed, "kubelet-config: {evictionMaxPodGracePeriod: 3}"),
            None,
            "the node has this value"
        );
        let why = skipped(&allowed, "kubelet-config: {evictionMaxPodGracePeriod: 5}").unwrap();
        assert!(
            why.contains(
                "not supported on existing clusters: evictionMaxPodGracePeriod: requested 5, effective 3"
            ),
            "{why}"
        );
    }

    #[test]
    fn skips_pressure_on_resources_that_other_nodes_share() {
        let disk = json!({"evictionHard": {"nodefs.available": "10%", "memory.available": "500Mi"}});
        let mut policy = policy(disk, None);
        policy.external.shared_kernel_nodes = ["control-plane".to_owned()].into();
        let skipped = |signal: &str| {
            policy.skip_reason(&case(&format!("pressure: {{signal: {signal}}}")), &str::to_owned)
        };
        let why = skipped("nodefs.available").unwrap().to_string();
        assert!(why.contains("nodefs.available, which this node shares with control-plane"), "{why}");
        assert_eq!(skipped("memory.available"), None, "each node has its own memory");
    }

    #[test]
    fn skips_cases_that_change_more_than_namespaces() {
        let policy = policy(json!({}), None);
        let rows = [
            (
                "node: {file-systems: {imagefs: 8Gi}}",
                "changes the node (file systems), which is not supported",
            ),
            ("node: {memory: 1Gi}", "changes the node (memory limit), which is not supported"),
            (
                "do: [{taint: {key: a, effect: NoExecute}}, {untaint: a}, {evict: p}]",
                "changes the node (taint, untaint)",
            ),
            ("static-pods: [{}]", "changes the node (static pods)"),
            ("do: [{create-static-pod: {}}]", "changes the node (create-static-pod)"),
            ("do: [{exec: {pod: p, command: [ls]}}]", "runs commands through the container runtime"),
            (
                "priority-classes: {high: 1000}",
                "creates priority or runtime classes, which are cluster-scoped",
            ),
            ("runtime-classes: {a: {memory: 9Mi}}", "creates priority or runtime classes"),
            ("until: 'kubeletLog.size() > 0'", "reads the kubelet's log"),
            (
                "pods: [{spec: {containers: [{name: a, resources: {requests: {memory: 600Mi}}}]}}, {spec: {containers: [{name: a, resources: {requests: {memory: 401Mi}}}]}}]",
                "the pods request 1001Mi of memory, and the node has 1000Mi allocatable",
            ),
            ("kubelet-config: {evictionHard: null}", "requires another kubelet configuration"),
            ("pressure: {signal: pid.available}", "exhausts pid.available"),
            (
                "pressure: {signal: memory.available, by: kube-reserved}",
                "requires another kubelet configuration, which is not supported on existing clusters: resources are reserved",
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
        for (more, part) in rows {
            let why = policy.skip_reason(&case(more), &|name| format!("full/{name}"));
            assert!(why.as_ref().is_some_and(|why| why.to_string().contains(part)), "{more}: {why:?}");
        }
        assert_eq!(
            policy.skip_reason(&case("do: [{evict: p}, {create: {kind: Pod}}]"), &str::to_owned),
            None
        );
    }

    #[test]
    fn skips_pods_that_could_harm_the_node_without_permission() {
        let limited = |more: &str| {
            format!(
                "pods: [{{metadata: {{name: p}}, spec: {{{more} containers: [{{name: c, resources: {{limits: {{memory: 64Mi, ephemeral-storage: 1Mi}}}}}}]}}}}]"
            )
        };
        let unlimited =
            "pods: [{metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}]";
        let huge = "pods: [{metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {memory: 0}, limits: {memory: 3Gi, ephemeral-storage: 1Mi}}}]}}]";
        let no_flag = Some(PressureForbidden::NotAllowed);
        let rows = [
            (no_flag.clone(), limited(""), None),
            (
                no_flag.clone(),
                "pods: [{metadata: {name: p}, spec: {containers: [{name: c}]}}]".to_owned(),
                None,
            ),
            (
                no_flag.clone(),
                unlimited.to_owned(),
                Some(
                    "container c of Pod p has no memory limit and could put the node under pressure, which requires --allow-disruption",
                ),
            ),
            (None, unlimited.to_owned(), None),
            (
                no_flag.clone(),
                limited("priorityClassName: system-node-critical,"),
                Some(
                    "Pod p has the priority class system-node-critical and could preempt other pods, which requires --allow-disruption",
                ),
            ),
            (no_flag.clone(), limited("priorityClassName: high,"), None),
            (
                no_flag.clone(),
                limited("priorityClassName: high,") + ", placed: scheduled",
                Some(
                    "Pod p has the priority class high and could preempt other pods, which requires --allow-disruption",
                ),
            ),
            (no_flag.clone(), limited("") + ", placed: scheduled", None),
            (None, limited("hostPID: true,"), Some("Pod p uses hostPID, which requires --allow-privileged")),
            (
                no_flag,
                huge.to_owned(),
                Some(
                    "the pods may take 3072Mi by their limits, more than the cap of 2048Mi (--pressure-cap)",
                ),
            ),
        ];
        for (forbidden, pods, expected) in rows {
            let why = policy(json!({}), forbidden).skip_reason(&case(&pods), &str::to_owned);
            assert_eq!(why.map(|why| why.to_string()).as_deref(), expected, "{pods}");
        }
        // The default priority class of the cluster preempts for scheduled pods only.
        let mut preempting = policy(json!({}), Some(PressureForbidden::NotAllowed));
        preempting.external.scheduled_pods_preempt = true;
        let skip_reason = |pods: &str| {
            let why = preempting.skip_reason(&case(pods), &str::to_owned);
            why.map(|why| why.to_string())
        };
        assert_eq!(skip_reason(&limited("")), None);
        assert_eq!(
            skip_reason(&(limited("") + ", placed: scheduled")).as_deref(),
            Some(
                "the scheduler gives its pods the default priority class of the cluster, and could preempt other pods for them, which requires --allow-disruption"
            )
        );
        // Without a permission, the limits must leave the node above its own threshold.
        let large = "pods: [{metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {memory: 0}, limits: {memory: 900Mi, ephemeral-storage: 1Mi}}}]}}]";
        let near = json!({"evictionHard": {"memory.available": "500Mi"}});
        let forbidden = policy(near.clone(), Some(PressureForbidden::NotAllowed));
        let why = forbidden.skip_reason(&case(large), &str::to_owned).map(|why| why.to_string());
        assert_eq!(
            why.as_deref(),
            Some(
                "the pods may take 900Mi of memory by their limits, and the node has 500Mi left above its thresholds, which requires --allow-disruption"
            )
        );
        let allowed = policy(near, None);
        assert_eq!(allowed.skip_reason(&case(large), &str::to_owned), None);
        assert!(allowed.may_cause_pressure(&case(large)), "it needs the permit for pressure");
        assert!(!allowed.may_cause_pressure(&case(&limited(""))));
        let budget = Amounts { memory: 372 << 20, disk: (10 << 30) - (128 << 20) };
        assert_eq!(allowed.budget(), budget);
        let mut trusted = policy(json!({}), None);
        trusted.external.allow_privileged = true;
        assert_eq!(trusted.skip_reason(&case(&limited("hostPID: true,")), &str::to_owned), None);
    }

    #[test]
    fn timeouts_include_the_periods_of_the_node() {
        let rows = [
            (json!({}), 390, 80),
            (json!({"evictionPressureTransitionPeriod": "0s", "volumeStatsAggPeriod": "0s"}), 390, 80),
            (json!({"evictionPressureTransitionPeriod": "30s", "volumeStatsAggPeriod": "1m30s"}), 120, 110),
        ];
        for (configz, recovery, stats) in rows {
            let policy = policy(configz, None);
            let recovery_timeout = policy.baseline().progress_timeout.as_secs();
            assert_eq!((recovery_timeout, policy.stats_delay().as_secs()), (recovery, stats));
        }
    }
}
