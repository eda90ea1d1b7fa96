//! A node of a run: prepared once, used by one case after the other, restored between them.

use std::sync::Arc;
use std::time::Duration;

use evictlab_case::Case;
use evictlab_cluster::kubelet_config::{self, ConfigureError};
use evictlab_cluster::workload::{Namespace, StageError};
use evictlab_cluster::{
    FileSystemsError, Node, NodeError, NodeFileSystems, NodeReversal, ProbePods, node_resources,
};
use tokio::sync::{Mutex, RwLock};

use crate::node_access::node_policy::NodePolicy;
use crate::node_access::pod_bounds::PodBounds;
use crate::node_access::pressure_permits::{PermitsLost, PressurePermit, PressurePermits};
use crate::node_access::room_budget::{RoomBudget, RoomPermit};
use crate::node_access::slowdown::Slowdown;
use crate::node_access::steady_statistics::{UnsteadyError, wait_until_steady};
use crate::recovery::verify_recovered::{
    NodeBaseline, RecoveryError, process_memory, verify_recovered, wait_until_pressure_ended,
    wait_until_recovered, wait_until_unused,
};
use crate::skip_reason::SkipReason;

/// Function from an image of a case to its full name.
pub(crate) type ImageNames = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A node that could not be prepared or did not recover.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunNodeError {
    /// The kubelet could not be configured.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// The node could not be read.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The node did not recover.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// Pods of an earlier case remain.
    #[error("failed to delete namespace {namespace} of an earlier case: {source}")]
    Leftover {
        /// The namespace.
        namespace: String,
        /// Reason why the namespace was not deleted.
        source: StageError,
    },
}

/// A node of a run.
pub(crate) struct RunNode {
    /// The node.
    pub node: Node,
    /// Held for reading by cases that share the node, for writing by a case that needs it for
    /// itself.
    pub access: RwLock<()>,
    /// Policy of an external node; `None` if evictlab created the node.
    pub policy: Option<NodePolicy>,
    /// Memory and disk of an external node for cases that must not put it under pressure.
    room: Option<RoomBudget>,
    /// Right to put an external node under pressure, from the first case that may do so until the
    /// node has recovered.
    pressure_permit: Mutex<Option<PressurePermit>>,
    state: Mutex<RunNodeState>,
    /// Namespaces of earlier cases that could not be deleted.
    leftovers: Mutex<Vec<Namespace>>,
    canaries: Arc<ProbePods>,
    image_names: ImageNames,
}

#[derive(Clone, Debug)]
struct RunNodeState {
    /// Time that the node takes to start a container, as last measured.
    container_start_duration: Duration,
    /// Slowdown of ramps, for a node whose statistics lag behind.
    slowdown: Slowdown,
    /// State of the node without a case.
    baseline: NodeBaseline,
    /// Changes of exclusive cases since the last recovery.
    dirty: DirtyState,
    /// Changes of cases that could not be reverted.
    not_reverted: Vec<NodeReversal>,
    /// The node may have file systems of a case.
    has_file_systems: bool,
    /// The node may have huge pages of a case.
    has_huge_pages: bool,
    /// Cases shared the node, or a try is repeated, since an exclusive case last waited for steady
    /// statistics.
    is_unsteady: bool,
    /// Reason why no case may use the node any more.
    unusable: Option<String>,
}

/// Changes that the last exclusive case left on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirtyState {
    /// No changes.
    Clean,
    /// Changes with an unknown effect on the node.
    Dirty,
    /// Changes by a case that ended as expected: the node has run its pods.
    DirtyHealthy,
}

impl RunNode {
    /// Applies the base configuration to the kubelet, except on an external node, and verifies that
    /// the node runs pods.
    ///
    /// # Errors
    /// The kubelet could not be configured, or the node does not run a canary pod.
    pub(crate) async fn prepare(
        node: Node,
        canaries: Arc<ProbePods>,
        image_names: ImageNames,
    ) -> Result<Self, RunNodeError> {
        let policy = NodePolicy::of(&node).await?;
        let base = kubelet_config::base(node.cgroup);
        if policy.is_none() && !kubelet_config::is_configured(&node, &base).await? {
            kubelet_config::configure(&node, &base).await?;
        }
        let mut baseline = policy.as_ref().map(NodePolicy::baseline).unwrap_or_default();
        let container_start_duration = verify_recovered(&node, &canaries, &baseline, &*image_names).await?;
        if policy.is_none() {
            baseline.rss = read_process_memory(&node).await;
        }
        let state = Mutex::new(RunNodeState {
            container_start_duration,
            slowdown: Slowdown::NONE,
            baseline,
            dirty: DirtyState::Clean,
            not_reverted: Vec::new(),
            has_file_systems: false,
            has_huge_pages: false,
            is_unsteady: false,
            unusable: None,
        });
        let room = policy.as_ref().map(|policy| RoomBudget::new(policy.budget()));
        let (access, leftovers, pressure_permit) = (RwLock::new(()), Mutex::default(), Mutex::default());
        Ok(Self { node, access, policy, room, pressure_permit, state, leftovers, canaries, image_names })
    }

    /// Returns the reason to skip a case on this node.
    pub(crate) fn skip_reason(&self, case: &Case) -> Option<SkipReason> {
        match case.cgroup.filter(|cgroup| *cgroup != self.node.cgroup) {
            Some(cgroup) => Some(SkipReason::Cgroup(cgroup)),
            None => self.policy.as_ref()?.skip_reason(case, &*self.image_names),
        }
    }

    /// Returns whether a case may put the node under pressure, if it is an external node.
    pub(crate) fn may_cause_pressure(&self, case: &Case) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.may_cause_pressure(case))
    }

    /// Waits until the limits of a case that must not put an external node under pressure fit
    /// beside those of the cases that run.
    pub(crate) async fn acquire_room(&self, case: &Case) -> Option<RoomPermit<'_>> {
        match &self.room {
            Some(room) if !self.may_cause_pressure(case) => room.acquire(PodBounds::of(case).limits).await,
            _ => None,
        }
    }

    /// Waits for the right to put the node under pressure, unless the node has it.
    ///
    /// # Errors
    /// All permits are lost.
    pub(crate) async fn acquire_pressure_permit(&self, permits: &PressurePermits) -> Result<(), PermitsLost> {
        let mut held = self.pressure_permit.lock().await;
        if held.is_none() {
            *held = Some(permits.acquire().await?);
        }
        Ok(())
    }

    /// Records a namespace whose pods may put the node under pressure.
    pub(crate) async fn record_pressure_namespace(&self, namespace: &str) {
        if let Some(held) = &mut *self.pressure_permit.lock().await {
            held.namespaces.push(namespace.to_owned());
        }
    }

    /// Takes the right to put the node under pressure from the node.
    pub(crate) async fn take_pressure_permit(&self) -> Option<PressurePermit> {
        self.pressure_permit.lock().await.take()
    }

    /// Waits until the node has recovered from the pressure of pods in these namespaces, and they
    /// have ended.
    ///
    /// # Errors
    /// The node did not recover.
    pub(crate) async fn wait_until_pressure_ended(&self, namespaces: &[String]) -> Result<(), RecoveryError> {
        let baseline = self.state.lock().await.baseline.clone();
        wait_until_pressure_ended(&self.node, &baseline, namespaces).await
    }

    /// Returns the container start duration, multiplied by the slowdown factor.
    pub(crate) async fn scaled_container_start_duration(&self) -> Duration {
        let state = self.state.lock().await;
        state.container_start_duration * state.slowdown.factor()
    }

    /// Returns the minimum time of a ramp to the crossing of a threshold.
    pub(crate) async fn min_ramp_duration(&self) -> Duration {
        let factor = self.state.lock().await.slowdown.factor();
        self.policy.as_ref().map_or(Duration::ZERO, |_| NodePolicy::MIN_RAMP_DURATION * factor)
    }

    /// Slows ramps down after one that was faster than the node's statistics.
    pub(crate) async fn slow_down(&self) {
        self.state.lock().await.slowdown.increase();
    }

    /// Records a ramp that the node's statistics followed.
    pub(crate) async fn record_followed_ramp(&self) {
        self.state.lock().await.slowdown.record_followed_ramp();
    }

    /// Returns why no exclusive case may use the node any more.
    pub(crate) async fn unusable_reason(&self) -> Option<String> {
        self.state.lock().await.unusable.clone()
    }

    /// Returns the function that gives full image names.
    pub(crate) fn image_names(&self) -> &ImageNames {
        &self.image_names
    }

    /// Records that a case is about to change the node.
    pub(crate) async fn mark_dirty(&self) {
        self.state.lock().await.dirty = DirtyState::Dirty;
    }

    /// Gives the node the file systems of a case, until the next [`recover`](Self::recover).
    ///
    /// # Errors
    /// The node does not support them, or could not be changed.
    pub(crate) async fn set_up_file_systems(&self, wanted: NodeFileSystems) -> Result<(), FileSystemsError> {
        {
            let mut state = self.state.lock().await;
            (state.dirty, state.has_file_systems) = (DirtyState::Dirty, true);
        }
        node_resources::set_up_file_systems(&self.node, wanted).await
    }

    /// Reserves memory for huge pages, in bytes, until the next [`recover`](Self::recover), on a
    /// node that can have its own. Returns the huge pages of the node, in bytes.
    ///
    /// # Errors
    /// The node cannot be reached, or its kubelet does not start again.
    pub(crate) async fn set_up_huge_pages(&self, bytes: u64) -> Result<u64, ConfigureError> {
        if self.node.backend().has_own_huge_pages() {
            let mut state = self.state.lock().await;
            (state.dirty, state.has_huge_pages) = (DirtyState::Dirty, true);
        }
        node_resources::reserve_huge_pages(&self.node, bytes).await
    }

    /// Reverts changes of a case.
    ///
    /// # Errors
    /// A reversal failed; the next [`recover`](Self::recover) tries again.
    pub(crate) async fn revert(&self, reversal: NodeReversal) -> Result<(), NodeError> {
        let reverted = self.node.revert(reversal).await;
        if reverted.is_err() {
            let mut state = self.state.lock().await;
            state.dirty = DirtyState::Dirty;
            state.not_reverted.push(reversal);
        }
        reverted
    }

    /// Records that the case on a dirty node ended as expected, with its container start duration.
    pub(crate) async fn mark_healthy(&self, container_start_duration: Duration) {
        let mut state = self.state.lock().await;
        if state.dirty == DirtyState::Dirty {
            (state.dirty, state.container_start_duration) =
                (DirtyState::DirtyHealthy, container_start_duration);
        }
    }

    /// Returns whether the node needs a [`recover`](Self::recover).
    pub(crate) async fn is_dirty(&self) -> bool {
        self.state.lock().await.dirty != DirtyState::Clean
    }

    /// Keeps a namespace that could not be deleted for
    /// [`delete_leftovers`](Self::delete_leftovers).
    pub(crate) async fn leave_namespace(&self, namespace: Namespace) {
        self.leftovers.lock().await.push(namespace);
    }

    /// Deletes the namespaces of earlier cases that could not be deleted before. Their pods still
    /// run: the kubelet would count their evictions in the next case, or evict them instead of its
    /// pods.
    ///
    /// # Errors
    /// A namespace was not deleted within `timeout`; the node is unusable for exclusive cases from
    /// then on.
    pub(crate) async fn delete_leftovers(&self, timeout: Duration) -> Result<(), RunNodeError> {
        let mut leftovers = self.leftovers.lock().await;
        while let Some(namespace) = leftovers.last() {
            if let Err(source) = namespace.delete(timeout).await {
                let error = RunNodeError::Leftover { namespace: namespace.name.clone(), source };
                self.state.lock().await.unusable = Some(error.to_string());
                return Err(error);
            }
            leftovers.pop();
        }
        Ok(())
    }

    /// Records that pods of a case may have left memory or files that become free: of a case that
    /// shared the node, or of a try that is repeated.
    pub(crate) async fn mark_unsteady(&self) {
        self.state.lock().await.is_unsteady = true;
    }

    /// Waits until statistics without pods of cases are steady, if the node was marked as unsteady
    /// since the last call.
    ///
    /// # Errors
    /// The statistics did not become steady in time. The case goes on: if it then does not reach
    /// its threshold, it is run again.
    pub(crate) async fn wait_until_steady(&self) -> Result<(), UnsteadyError> {
        let mut state = self.state.lock().await;
        if std::mem::take(&mut state.is_unsteady) { self.wait_until_pods_ended().await } else { Ok(()) }
    }

    /// Waits until the node's statistics are steady and do not list pods of cases any more.
    ///
    /// # Errors
    /// The statistics did not become steady in time.
    pub(crate) async fn wait_until_pods_ended(&self) -> Result<(), UnsteadyError> {
        wait_until_steady(&self.node).await
    }

    /// Waits until the pods of the last case, which ended as expected, are gone with their memory.
    /// The kubelet keeps the configuration of that case: the caller replaces it, and the restarted
    /// kubelet has no pressure conditions of the case. Returns `false` if the node needs a
    /// [`recover`](Self::recover): after other cases, and if the pods or their memory remain.
    pub(crate) async fn wait_until_unused(&self) -> bool {
        let mut state = self.state.lock().await;
        let has_only_another_config = state.dirty == DirtyState::DirtyHealthy
            && self.policy.is_none()
            && !state.has_file_systems
            && !state.has_huge_pages
            && state.not_reverted.is_empty();
        let Some(rss) = state.baseline.rss.filter(|_| has_only_another_config) else { return false };
        if wait_until_unused(&self.node, &state.baseline, rss).await.is_err() {
            return false;
        }
        state.baseline.rss = read_process_memory(&self.node).await.or(state.baseline.rss);
        true
    }

    /// Restores the base configuration and waits until the node has recovered. A canary pod runs
    /// only if the last case did not show already that the node runs pods.
    ///
    /// # Errors
    /// The node did not recover; it is unusable from then on.
    pub(crate) async fn recover(&self) -> Result<(), RunNodeError> {
        // The lock is held until the node has recovered, so that other cases on this node wait for
        // it.
        let mut state = self.state.lock().await;
        let before = state.clone();
        match self.restore_and_verify(&before).await {
            Ok(container_start_duration) => {
                // The kubelet's memory grows with each case; the next one is compared with this
                // state.
                if self.policy.is_none() {
                    state.baseline.rss = read_process_memory(&self.node).await.or(before.baseline.rss);
                }
                (state.container_start_duration, state.dirty) = (container_start_duration, DirtyState::Clean);
                (state.has_file_systems, state.has_huge_pages) = (false, false);
                state.not_reverted.clear();
                Ok(())
            }
            Err(error) => {
                state.unusable = Some(error.to_string());
                Err(error)
            }
        }
    }

    async fn restore_and_verify(&self, state: &RunNodeState) -> Result<Duration, RunNodeError> {
        for reversal in &state.not_reverted {
            self.node.revert(*reversal).await?;
        }
        if state.has_file_systems {
            node_resources::restore_file_systems(&self.node).await?;
        }
        if state.has_huge_pages {
            node_resources::reserve_huge_pages(&self.node, 0).await?;
        }
        if self.policy.is_none() {
            kubelet_config::configure(&self.node, &kubelet_config::base(self.node.cgroup)).await?;
        }
        let baseline = &state.baseline;
        if state.dirty == DirtyState::DirtyHealthy {
            wait_until_recovered(&self.node, baseline).await?;
            return Ok(state.container_start_duration);
        }
        Ok(verify_recovered(&self.node, &self.canaries, baseline, &*self.image_names).await?)
    }
}

async fn read_process_memory(node: &Node) -> Option<u64> {
    process_memory(&node.sample().await.ok()?)
}
