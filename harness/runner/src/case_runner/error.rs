//! Errors that end a case before its verdict.

use evictlab_case::ApiRejection;
use evictlab_cluster::NodeError;
use evictlab_cluster::kubelet_config::ConfigureError;
use evictlab_cluster::wait::Stalled;
use evictlab_cluster::workload::StageError;
use evictlab_evidence::DecodeError;
use evictlab_judge::{CaseResult, InconclusiveReason, Phase, Verdict};

use crate::lease::leased_node::LeaseError;
use crate::lease::node_policy::PlanError;
use crate::pressure::host_budget::{HostError, HostTooSmall};
use crate::pressure::skip_reason::SkipReason;

/// Error that ends a case before its verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaseError {
    /// The node could not be read or changed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The kubelet could not be configured.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// An object could not be created or deleted.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The API server or the kubelet returned an object that cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The node did not recover from the last case.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The API server refused an object of the case; with the line of the case file.
    #[error("{0}")]
    Refused(String),
    /// The API server or the kubelet stopped answering.
    #[error("the API server is unreachable: {0}")]
    Unreachable(String),
    /// The host has less available than the case takes.
    #[error(transparent)]
    HostTooSmall(#[from] HostTooSmall),
    /// The case does not fit the node.
    #[error(transparent)]
    Skip(#[from] SkipReason),
    /// The node has less than the distance to the threshold.
    #[error("node {node} has less {signal} than the distance to the threshold")]
    DistanceNotAvailable {
        /// The node.
        node: String,
        /// The signal.
        signal: &'static str,
    },
    /// The node is not ready after a restart of its kubelet.
    #[error("node {node} is not ready after a restart of its kubelet: {stalled}")]
    NotReady {
        /// The node.
        node: String,
        /// Its last state.
        stalled: Stalled,
    },
    /// The case would have harmed others on a node that evictlab does not manage.
    #[error("the case was ended early: {0}")]
    EndedByGuard(String),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl From<HostError> for CaseError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::TooSmall(error) => Self::HostTooSmall(error),
            HostError::Node(error) => Self::Node(error),
        }
    }
}

impl From<PlanError> for CaseError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Skip(reason) => Self::Skip(reason),
            PlanError::Node(error) => Self::Node(error),
        }
    }
}

impl CaseError {
    /// Returns the result of a case that ended with this error in a phase.
    pub(crate) fn into_result(self, phase: Phase) -> CaseResult {
        let (verdict, doubt) = match &self {
            Self::HostTooSmall(_) | Self::DistanceNotAvailable { .. } => {
                (Verdict::Inconclusive, Some(InconclusiveReason::HostUnfit))
            }
            Self::Interrupted | Self::Node(NodeError::DiskFull { .. }) | Self::Skip(_) => {
                (Verdict::Skipped, None)
            }
            _ => (Verdict::Error, None),
        };
        let mut result = CaseResult::without_evidence(verdict, self.to_string());
        result.doubt = doubt;
        result.phase = (verdict == Verdict::Error).then_some(phase);
        result
    }
}

/// Returns the parts of an API `Status` that name fields of a case file.
pub(super) fn refusal(status: &kube::core::Status) -> ApiRejection<'_> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    ApiRejection { message: &status.message, fields: causes.map(|cause| cause.field.as_str()).collect() }
}
