//! Errors that end a case before its verdict.

use evictlab_case::expression::ExpressionError;
use evictlab_case::{ApiRejection, ContainerCommand};
use evictlab_cluster::kubelet_config::ConfigureError;
use evictlab_cluster::wait::StalledError;
use evictlab_cluster::workload::StageError;
use evictlab_cluster::{FileSystemsError, NodeError};
use evictlab_evidence::{CommandOutput, DecodeError};
use evictlab_judge::{CaseResult, InconclusiveReason, Phase, Verdict};

use crate::node_access::node_policy::PlanError;
use crate::node_access::pressure_permits::PermitsLost;
use crate::node_access::run_node::RunNodeError;
use crate::pressure::host_budget::{HostError, HostTooSmall};
use crate::skip_reason::SkipReason;

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
    RunNode(#[from] RunNodeError),
    /// The API server rejected an object of the case; with the line of the case file.
    #[error("{0}")]
    ApiRejected(String),
    /// The API server's rejection of an ephemeral container cannot be recorded.
    #[error("failed to record the rejection of an ephemeral container of pod {pod}: {source}")]
    Rejection {
        /// Name of the pod.
        pod: String,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A command was to run in a container that does not run.
    #[error("failed to run a command in {0}: the container does not run")]
    NotRunning(String),
    /// A pod to resize does not exist.
    #[error("failed to resize pod {0}: it does not exist")]
    NoPodToResize(String),
    /// A command of a step failed, and the case does not keep its exit status.
    #[error(
        "failed to run `{command}` in {container}: exited with {code}{output}\nhelp: name an `answer` in the step to keep the exit status"
    )]
    CommandFailed {
        /// The command.
        command: String,
        /// Container and pod.
        container: String,
        /// Exit status.
        code: i64,
        /// A colon and the output, if there is any.
        output: String,
    },
    /// The API server or the kubelet stopped answering.
    #[error("failed to reach the API server: {0}")]
    Unreachable(String),
    /// The host has less available than the case takes.
    #[error(transparent)]
    HostTooSmall(#[from] HostTooSmall),
    /// The case does not fit the node.
    #[error(transparent)]
    Skip(#[from] SkipReason),
    /// The node has less than the distance to the threshold.
    #[error(
        "failed to approach the threshold of node {node}: it has less {signal} than the distance to the threshold"
    )]
    DistanceNotAvailable {
        /// The node.
        node: String,
        /// The signal.
        signal: &'static str,
    },
    /// The node is not ready after a restart of its kubelet.
    #[error("failed to wait for node {node} after a restart of its kubelet: {stalled}")]
    NotReady {
        /// The node.
        node: String,
        /// Its last state.
        stalled: StalledError,
    },
    /// A condition of the case is too costly.
    #[error("failed to evaluate `{key}`: {source}")]
    Condition {
        /// Key of the case file.
        key: &'static str,
        /// The error.
        source: ExpressionError,
    },
    /// The case would have harmed others on a node that evictlab does not manage.
    #[error("failed to complete the case: {0}")]
    EndedByGuard(String),
    /// No further node may come under pressure.
    #[error(transparent)]
    PermitsLost(#[from] PermitsLost),
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

impl From<FileSystemsError> for CaseError {
    fn from(error: FileSystemsError) -> Self {
        match error {
            FileSystemsError::Unsupported { .. } => Self::Skip(SkipReason::FileSystems(error.to_string())),
            FileSystemsError::Node(error) => Self::Node(error),
            FileSystemsError::Configure(error) => Self::Configure(error),
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
    /// Returns the error of a command that ended with another exit status than 0.
    pub(super) fn command(command: &ContainerCommand, result: &CommandOutput) -> Self {
        let output = if result.stderr.trim().is_empty() { &result.stdout } else { &result.stderr };
        Self::CommandFailed {
            command: command.command.join(" "),
            container: describe_container(command),
            code: result.code,
            output: Some(output.trim())
                .filter(|text| !text.is_empty())
                .map_or_else(String::new, |text| format!(": {text}")),
        }
    }

    /// Returns a function from the error of an expression to that of its key in the case file.
    pub(super) fn condition(key: &'static str) -> impl FnOnce(ExpressionError) -> Self {
        move |source| Self::Condition { key, source }
    }

    /// Returns the result of a case that ended with this error in a phase.
    pub(crate) fn into_result(self, phase: Phase) -> CaseResult {
        let (verdict, reason) = match &self {
            Self::HostTooSmall(_) | Self::DistanceNotAvailable { .. } => {
                (Verdict::Inconclusive, Some(InconclusiveReason::HostUnfit))
            }
            Self::Node(NodeError::DiskFull { .. }) | Self::Skip(_) => (Verdict::Skipped, None),
            Self::Node(_)
            | Self::Configure(_)
            | Self::Stage(_)
            | Self::Decode(_)
            | Self::RunNode(_)
            | Self::ApiRejected(_)
            | Self::Rejection { .. }
            | Self::NotRunning(_)
            | Self::NoPodToResize(_)
            | Self::CommandFailed { .. }
            | Self::Unreachable(_)
            | Self::NotReady { .. }
            | Self::Condition { .. }
            | Self::EndedByGuard(_)
            | Self::PermitsLost(_)
            | Self::Interrupted => (Verdict::Error, None),
        };
        let mut result = CaseResult::without_evidence(verdict, self.to_string());
        result.inconclusive_reason = reason;
        result.phase = (verdict == Verdict::Error).then_some(phase);
        result
    }
}

/// Describes the container of a command, such as `container el1 of pod web`.
pub(super) fn describe_container(command: &ContainerCommand) -> String {
    match &command.container {
        Some(container) => format!("container {container} of pod {}", command.pod),
        None => format!("the first container of pod {}", command.pod),
    }
}

/// Returns the parts of an API `Status` that name fields of a case file.
pub(super) fn describe_rejection(status: &kube::core::Status) -> ApiRejection<'_> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    ApiRejection { message: &status.message, fields: causes.map(|cause| cause.field.as_str()).collect() }
}
