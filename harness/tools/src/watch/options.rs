//! Options of a watch and its view.

use std::time::Duration;

use evictlab_report::TerminalCaps;
use evictlab_rules::threshold::Signal;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::ResourceExt;

/// Nodes and signal to watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Names of nodes; if empty, all nodes or those that match the selector.
    pub nodes: Vec<String>,
    /// Label selector of nodes.
    pub selector: Option<String>,
    /// The watched signal.
    pub signal: Signal,
    /// Time between two queries of a kubelet.
    pub interval: Duration,
}

impl WatchOptions {
    /// Returns whether a node is watched, if it matches the selector.
    pub(super) fn includes(&self, node: &ApiNode) -> bool {
        self.nodes.is_empty() || self.nodes.contains(&node.name_any())
    }
}

/// Presentation of a watch.
#[derive(Clone, Debug)]
pub struct ViewOptions {
    /// True if to redraw and to use colors.
    pub terminal: TerminalCaps,
    /// Number of pods listed for each node.
    pub pods: usize,
    /// Title in the first line.
    pub title: String,
}
