//! Errors of using an existing cluster.

use crate::node::NodeError;
use crate::probe::ProbeError;
use crate::wait::StalledError;
use crate::workload::StageError;

/// An existing cluster could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ExistingError {
    /// The kubeconfig is missing or invalid.
    #[error("failed to load the kubeconfig: {0}\nhelp: name it with --kubeconfig, or set KUBECONFIG")]
    Kubeconfig(String),
    /// The service account of the pod, in which this process runs, cannot be used.
    #[error(
        "failed to load the service account of this pod: {0}\nhelp: set automountServiceAccountToken: true in the pod, or name a kubeconfig with --kubeconfig"
    )]
    ServiceAccount(String),
    /// The kubeconfig does not have the context.
    #[error("failed to select a context: {}", no_context(named.as_deref(), available))]
    NoContext {
        /// Requested context, if any.
        named: Option<String>,
        /// Contexts of the kubeconfig.
        available: Vec<String>,
    },
    /// The API server does not answer, or refuses a request.
    #[error("failed to {operation} of cluster {cluster} at {server}: {problem}")]
    Api {
        /// Name of the cluster.
        cluster: String,
        /// Address of the API server.
        server: String,
        /// Verb phrase of the request.
        operation: &'static str,
        /// Error of the client.
        problem: String,
    },
    /// The user lacks RBAC permissions.
    #[error(
        "failed to use cluster {cluster}: permission denied: {}\nhelp: bind a ClusterRole with these permissions; harness/guides/reference/clusters.md lists all of them",
        missing.join(", ")
    )]
    Forbidden {
        /// Name of the cluster.
        cluster: String,
        /// Missing permissions, as `VERB RESOURCE` or in the words of the API server.
        missing: Vec<String>,
    },
    /// The node selector is invalid, or selects no usable node.
    #[error(
        "failed to select nodes with selector {selector}: {problem}\nhelp: list the labels with `kubectl get nodes --show-labels`"
    )]
    Selector {
        /// The selector.
        selector: String,
        /// Problem of the selector.
        problem: String,
    },
    /// A node does not exist.
    #[error(
        "failed to select nodes of cluster {cluster}: no node is named {name}\nhelp: its nodes are {}",
        listed(available)
    )]
    NoSuchNode {
        /// Name of the cluster.
        cluster: String,
        /// Requested name.
        name: String,
        /// Nodes of the cluster.
        available: Vec<String>,
    },
    /// No node may be used without a selector.
    #[error(
        "failed to find a usable node in cluster {cluster}: {excluded}\nhelp: select nodes with --node-selector"
    )]
    NoNodes {
        /// Name of the cluster.
        cluster: String,
        /// Each node with the reason that it is not used.
        excluded: String,
    },
    /// A probe pod has no result.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A node could not be reached.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The API server rejected an object.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The namespaces of a run could not be deleted at its end.
    #[error(
        "failed to delete the namespaces of the run in cluster {cluster}: {problem}\nhelp: `evictlab gc --backend existing --run {run}` deletes them"
    )]
    TearDown {
        /// Name of the cluster.
        cluster: String,
        /// Id of the run.
        run: String,
        /// The last error.
        problem: String,
    },
    /// Deleted namespaces remain.
    #[error(
        "failed to wait for the deletion of the run's namespaces in cluster {cluster}: {stalled}\nhelp: the API server has not finished; list them with `kubectl get namespaces -l evictlab.dev/run`"
    )]
    NamespacesRemain {
        /// Name of the cluster.
        cluster: String,
        /// Last observation.
        #[source]
        stalled: StalledError,
    },
}

impl ExistingError {
    /// Error of a kubeconfig, with the causes that its own text does not contain.
    pub(crate) fn kubeconfig(error: impl std::error::Error) -> Self {
        Self::Kubeconfig(with_causes(error))
    }

    /// Error of the service account of a pod.
    pub(crate) fn service_account(error: impl std::error::Error) -> Self {
        Self::ServiceAccount(with_causes(error))
    }

    /// Returns whether the command line is wrong, not the cluster.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Kubeconfig(_)
                | Self::ServiceAccount(_)
                | Self::NoContext { .. }
                | Self::Selector { .. }
                | Self::NoSuchNode { .. }
                | Self::NoNodes { .. }
        )
    }
}

/// Text of an error, with the causes that its own text does not contain.
fn with_causes(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}

fn no_context(named: Option<&str>, available: &[String]) -> String {
    let problem = match named {
        Some(name) => format!("the kubeconfig has no context {name}"),
        None => "the kubeconfig has no current context".to_owned(),
    };
    format!("{problem}; it has {}\nhelp: name a context with --context", listed(available))
}

/// Returns names in one line, or `none`.
pub(crate) fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
