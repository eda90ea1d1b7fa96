//! Errors of node operations.

use crate::api_error::api_error_message;
use crate::docker::DockerError;
use crate::images::ImageLoadError;
use crate::run_lease::LeaseLost;
use crate::wait::StalledError;

/// An operation on a node failed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The node is not part of an embedded cluster.
    #[error("failed to inject faults into node {0}: only embedded clusters support faults")]
    FaultsUnsupported(String),
    /// An embedded cluster does not have the node.
    #[error("failed to {operation} on node {node}: the cluster has no such node")]
    NoSuchNode {
        /// Verb phrase of the operation.
        operation: &'static str,
        /// Name of the node.
        node: String,
    },
    /// The disk of an embedded node is full.
    #[error("failed to write a static pod on node {node}: the disk is full")]
    DiskFull {
        /// Name of the node.
        node: String,
    },
    /// The node belongs to an external cluster, whose kubelets are never changed.
    #[error("failed to change the kubelet of node {0}: the node belongs to an external cluster")]
    NotManaged(String),
    /// The run does not hold the node any more.
    #[error("failed to use node {node}: the run does not hold its Lease any more: {lost}")]
    NotHeld {
        /// Name of the node.
        node: String,
        /// Cause of the loss.
        #[source]
        lost: LeaseLost,
    },
    /// A command could not be run in a container.
    #[error("failed to run `{command}` in container {container}: {problem}")]
    Exec {
        /// The command.
        command: String,
        /// ID of the container.
        container: String,
        /// Cause of the failure.
        problem: String,
    },
    /// An image could not be loaded.
    #[error(transparent)]
    Image(#[from] ImageLoadError),
    /// The API server refused the request or did not answer.
    #[error("failed to {operation} of node {node}: {}", api_error_message(source))]
    Api {
        /// Verb phrase of the request.
        operation: &'static str,
        /// Name of the node.
        node: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// The kubelet did not answer in time.
    #[error("failed to {operation} of node {node}: no answer within {seconds} s")]
    NoAnswer {
        /// Verb phrase of the request.
        operation: &'static str,
        /// Name of the node.
        node: String,
        /// Maximum time of the request in seconds.
        seconds: u64,
    },
    /// The response could not be parsed.
    #[error("failed to {operation} of node {node}: invalid response: {problem}")]
    InvalidResponse {
        /// Verb phrase of the request.
        operation: &'static str,
        /// Name of the node.
        node: String,
        /// Reason that the response is invalid.
        problem: String,
    },
}

impl NodeError {
    pub(super) fn exec(container: &str, command: &[String], problem: String) -> Self {
        // The first twelve digits identify a container.
        let container = container.chars().take(12).collect();
        Self::Exec { command: command.join(" "), container, problem }
    }
}

/// A kubelet could not be configured or restored.
#[derive(Debug, thiserror::Error)]
pub enum ConfigureError {
    /// The node could not be reached.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The kubelet configuration of the node could not be parsed.
    #[error("failed to parse the KubeletConfiguration {file} of node {node}: {problem}")]
    InvalidConfig {
        /// Name of the node.
        node: String,
        /// Path of the configuration file.
        file: String,
        /// Parse error.
        problem: String,
    },
    /// The restarted kubelet does not answer, or does not have the requested configuration.
    #[error("failed to configure the kubelet of node {node}: {stalled}\nlast log lines:\n{log}")]
    NotApplied {
        /// Name of the node.
        node: String,
        /// Last observation.
        #[source]
        stalled: StalledError,
        /// End of the kubelet log.
        log: String,
    },
}
