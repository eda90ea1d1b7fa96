//! What can go wrong with somebody else's cluster, and what to do about it.

use crate::cluster::NodeError;
use crate::stage::StageError;
use crate::wait::Stalled;

/// An existing cluster could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ExistingError {
    /// The kubeconfig is missing, or wrong.
    #[error("no cluster can be reached: {0}\nName its kubeconfig with --kubeconfig, or set KUBECONFIG.")]
    Kubeconfig(String),
    /// The kubeconfig has no such context.
    #[error(
        "the kubeconfig {}; it has {}\nName one with --context.",
        named.as_ref().map_or_else(|| "names no current context".to_owned(), |name| format!("has no context named {name}")),
        if has.is_empty() { "none".to_owned() } else { has.join(", ") }
    )]
    NoContext {
        /// The context that was asked for, if any was.
        named: Option<String>,
        /// Those that it has.
        has: Vec<String>,
    },
    /// The API server does not answer, or refuses to.
    #[error("the API server of {cluster} at {server} could not {doing}: {problem}")]
    Api {
        /// The cluster.
        cluster: String,
        /// Its address.
        server: String,
        /// What was asked, as a verb phrase.
        doing: &'static str,
        /// Why not.
        problem: String,
    },
    /// The user lacks rights.
    #[error(
        "in {cluster} you may not {}\nIt takes a ClusterRole with these rights; README.md lists all of them.",
        missing.join(", nor ")
    )]
    Forbidden {
        /// The cluster.
        cluster: String,
        /// What is not allowed, as verb phrases.
        missing: Vec<String>,
    },
    /// The selector selects nothing that can be used.
    #[error("the node selector {selector} {problem}\nSee `kubectl get nodes --show-labels`.")]
    Selector {
        /// The selector.
        selector: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A node was named that is not there.
    #[error("{cluster} has no node named {name}; it has {}", if has.is_empty() { "none".to_owned() } else { has.join(", ") })]
    NoSuchNode {
        /// The cluster.
        cluster: String,
        /// The name that was asked for.
        name: String,
        /// Those that it has.
        has: Vec<String>,
    },
    /// No node is fit.
    #[error(
        "no node of {cluster} is used unless it is selected: {left_out}\nSelect nodes with --node-selector."
    )]
    NoNodes {
        /// The cluster.
        cluster: String,
        /// Each node with why it is left out.
        left_out: String,
    },
    /// A node cannot have an image.
    #[error(
        "node {node} has no image {image} and cannot pull it: {why}\nLet the node reach its registry, or load the image into it; another name goes into an --image-lock."
    )]
    Image {
        /// The node.
        node: String,
        /// The image.
        image: String,
        /// What the kubelet says.
        why: String,
    },
    /// A node runs no pod.
    #[error("node {node} does not run a small pod: {why}")]
    NoPods {
        /// The node.
        node: String,
        /// What its status says.
        why: String,
    },
    /// A node could not be asked.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The API refused an object.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Namespaces of the run stay.
    #[error(
        "namespaces that the run made in {cluster} do not go away: {stalled}\nThey are deleted, and their API server has not finished; `kubectl get namespaces -l evictlab.dev/run` shows them."
    )]
    Left {
        /// The cluster.
        cluster: String,
        /// What was last seen.
        stalled: Stalled,
    },
}

impl ExistingError {
    /// A kubeconfig that leads nowhere.
    pub(super) fn kubeconfig(error: impl std::error::Error) -> Self {
        // The cause says which file and why; each layer above repeats less of it.
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let more = inner.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            source = inner.source();
        }
        Self::Kubeconfig(text)
    }

    /// Whether the command line asks for what cannot be had, rather than that the cluster went wrong.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Kubeconfig(_)
                | Self::NoContext { .. }
                | Self::Selector { .. }
                | Self::NoSuchNode { .. }
                | Self::NoNodes { .. }
        )
    }
}
