//! Operations on a node, by the backend of its cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evictlab_fault::Fault;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::embedded::EmbeddedNode;
use super::existing::ExistingNode;
use super::kind::KindNode;
use crate::docker::{Docker, ExecOutput};
use crate::images::{UNUSED_IMAGES, unused_image_name};
use crate::node::error::{ConfigureError, NodeError};
use crate::node::external::ExternalNode;
use crate::node::file_systems::{FileSystemsError, NodeFileSystems};

/// Time limit of a command in a container.
const EXEC_TIMEOUT: Duration = Duration::from_secs(60);

/// A node as the backend of its cluster can reach it, beside the API server.
#[derive(Clone)]
pub enum NodeBackend {
    /// A modelled node.
    Embedded(EmbeddedNode),
    /// A Docker container.
    Kind(KindNode),
    /// A node that evictlab does not manage. Operations that would change its kubelet fail.
    Existing(Arc<ExistingNode>),
}

impl NodeBackend {
    /// Returns the backend of a kind node on the file system of the host, by its container.
    pub fn of_container(docker: &Docker, container: &str) -> Self {
        Self::Kind(KindNode { node: container.to_owned(), docker: docker.clone(), own_disk: false })
    }

    /// Returns the restrictions of a node that evictlab does not manage; `None` for a managed node.
    pub fn external(&self) -> Option<&ExternalNode> {
        match self {
            Self::Embedded(_) | Self::Kind(_) => None,
            Self::Existing(node) => Some(&node.external),
        }
    }

    /// Verifies that the run still holds the node; always true for a node that evictlab created.
    ///
    /// # Errors
    /// The run's Lease is gone, or could not be renewed.
    pub async fn confirm_held(&self) -> Result<(), NodeError> {
        match self {
            Self::Embedded(_) | Self::Kind(_) => Ok(()),
            Self::Existing(node) => node.confirm_held().await,
        }
    }

    /// Returns the images that the node could not pull, with the reasons.
    pub fn unavailable_images(&self) -> BTreeMap<String, String> {
        match self {
            Self::Embedded(_) | Self::Kind(_) => BTreeMap::new(),
            Self::Existing(node) => node.unavailable_images(),
        }
    }

    /// Applies changes to the node's original kubelet configuration, sets a short housekeeping
    /// interval, and restarts the kubelet. Returns when the old kubelet has exited.
    ///
    /// Maps are merged; all other values are replaced. Changes of earlier calls are discarded.
    pub async fn configure(&self, changes: &Map<String, Value>) -> Result<(), ConfigureError> {
        match self {
            Self::Embedded(node) => node.configure(changes),
            Self::Kind(node) => node.configure(changes).await,
            Self::Existing(node) => Err(node.not_managed().into()),
        }
    }

    /// Restarts the kubelet with its present configuration; containers continue to run. Returns
    /// when the old kubelet has exited.
    pub async fn restart_kubelet(&self) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.restart_kubelet(),
            Self::Kind(node) => node.restart_kubelet().await,
            Self::Existing(node) => Err(node.not_managed()),
        }
    }

    /// Returns whether the running kubelet collects statistics at the short interval.
    pub async fn has_short_housekeeping_interval(&self) -> Result<bool, NodeError> {
        match self {
            Self::Embedded(node) => node.has_short_housekeeping_interval(),
            Self::Kind(node) => node.has_short_housekeeping_interval().await,
            // Its flags are not accessible; it is assumed to have the default interval.
            Self::Existing(_) => Ok(false),
        }
    }

    /// Restores the original kubelet configuration and restarts the kubelet. Returns `false`,
    /// without a restart, if a kind node has its original configuration, and for nodes of existing
    /// clusters.
    pub async fn restore_config(&self) -> Result<bool, NodeError> {
        match self {
            Self::Embedded(node) => node.restore_config().map(|()| true),
            Self::Kind(node) => node.restore_config().await,
            Self::Existing(_) => Ok(false),
        }
    }

    /// Verifies that the restored configuration is still in place, and deletes its backup.
    pub async fn confirm_restored(&self) -> Result<(), NodeError> {
        match self {
            Self::Embedded(_) | Self::Existing(_) => Ok(()),
            Self::Kind(node) => node.confirm_restored().await,
        }
    }

    /// Gives images and writable layers a file system of their own, and restarts the kubelet.
    ///
    /// # Errors
    /// The node does not support it, or could not be changed.
    pub async fn set_up_file_systems(&self, file_systems: NodeFileSystems) -> Result<(), FileSystemsError> {
        match self {
            Self::Embedded(node) => Ok(node.set_up_file_systems(file_systems)?),
            Self::Kind(node) => node.set_up_file_systems(file_systems).await,
            Self::Existing(node) => Err(node.not_managed().into()),
        }
    }

    /// Restores the original file systems with their images, and restarts the kubelet. Returns
    /// `false` if the node has its original file systems.
    pub async fn restore_file_systems(&self) -> Result<bool, NodeError> {
        match self {
            Self::Embedded(node) => node.restore_file_systems(),
            Self::Kind(node) => node.restore_file_systems().await,
            Self::Existing(_) => Ok(false),
        }
    }

    /// Returns whether the node has huge pages of its own, not those of its host.
    pub fn has_own_huge_pages(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }

    /// Reserves memory for huge pages of 2 MiB, in bytes, instead of what is reserved, and restarts
    /// the kubelet. Does nothing on a node with the huge pages of its host.
    ///
    /// # Errors
    /// The embedded cluster has no such node.
    pub fn reserve_huge_pages(&self, bytes: u64) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.reserve_huge_pages(bytes),
            Self::Kind(_) | Self::Existing(_) => Ok(()),
        }
    }

    /// Returns the lines of the kubelet log since a point in time; `None` if the log is not
    /// accessible. Of a kind node, only the last ones are read.
    pub async fn kubelet_log(&self, since: Timestamp) -> Result<Option<Vec<String>>, NodeError> {
        match self {
            Self::Embedded(node) => node.kubelet_log(since).map(Some),
            Self::Kind(node) => node.kubelet_log(since).await.map(Some),
            Self::Existing(_) => Ok(None),
        }
    }

    /// Returns the last lines of the kubelet log, for error messages.
    pub async fn log_tail(&self) -> Result<String, NodeError> {
        match self {
            Self::Embedded(node) => node.log_tail(),
            Self::Kind(node) => node.log_tail().await,
            Self::Existing(_) => Ok("(kubelet logs of existing clusters are not accessible)".to_owned()),
        }
    }

    /// Returns the available memory of the host under the node, in bytes.
    pub async fn host_memory(&self) -> Result<u64, NodeError> {
        match self {
            Self::Embedded(node) => node.host_memory(),
            Self::Kind(node) => node.host_memory().await,
            Self::Existing(node) => node.host_memory().await,
        }
    }

    /// Returns whether the node shares its file system with no other node.
    pub fn has_own_disk(&self) -> bool {
        match self {
            Self::Embedded(_) => true,
            Self::Kind(node) => node.own_disk,
            Self::Existing(_) => false,
        }
    }

    /// Returns the free bytes of the host's disk that holds the node's own file systems; `None` if
    /// the node has the disk of its machine.
    pub async fn host_disk(&self) -> Result<Option<u64>, NodeError> {
        match self {
            Self::Kind(node) => node.host_disk().await.map(Some),
            Self::Embedded(_) | Self::Existing(_) => Ok(None),
        }
    }

    /// Limits the memory of the whole node in bytes, which the kubelet does not see; `None` removes
    /// the limit.
    pub async fn limit_memory(&self, bytes: Option<u64>) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.limit_memory(bytes),
            Self::Kind(node) => node.limit_memory(bytes).await,
            Self::Existing(node) => node.allow_only_if(bytes.is_none()),
        }
    }

    /// Pauses or resumes all processes of the node. Does nothing if the node already is in the
    /// requested state.
    pub async fn set_paused(&self, paused: bool) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.set_paused(paused),
            Self::Kind(node) => node.set_paused(paused).await,
            Self::Existing(node) => node.allow_only_if(!paused),
        }
    }

    /// Runs a command in a running container and returns its result. The command stays in the
    /// container if it has not ended in time.
    pub async fn exec(&self, container: &str, command: &[String]) -> Result<ExecOutput, NodeError> {
        let run = async {
            match self {
                Self::Embedded(node) => node.exec(container, command).await,
                Self::Kind(node) => node.exec(container, command).await,
                Self::Existing(node) => Err(node.not_managed()),
            }
        };
        let failed = |problem: String| NodeError::exec(container, command, problem);
        match tokio::time::timeout(EXEC_TIMEOUT, run).await {
            Ok(result) => result,
            Err(_) => Err(failed(format!("it has not ended after {} s", EXEC_TIMEOUT.as_secs()))),
        }
    }

    /// Makes an image available on the node. The image is not pinned, unless it was before.
    pub async fn load_image(&self, image: &str) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.load_image(image),
            Self::Kind(node) => node.load_image(image).await,
            Self::Existing(node) => Err(node.not_managed()),
        }
    }

    /// Adds an unused image of this size, unless the node already has one. The kubelet may delete
    /// the image.
    ///
    /// # Errors
    /// The image could not be imported, or the node is not managed by evictlab.
    pub async fn add_unused_image(&self, bytes: u64) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.add_image(&unused_image_name(bytes), bytes),
            Self::Kind(node) => node.add_unused_image(bytes).await,
            Self::Existing(node) => Err(node.not_managed()),
        }
    }

    /// Removes all images of [`Self::add_unused_image`] that the kubelet has not deleted. Does
    /// nothing on a node that is not managed by evictlab, which cannot have one.
    ///
    /// # Errors
    /// The container runtime does not answer.
    pub async fn remove_unused_images(&self) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.remove_images(UNUSED_IMAGES),
            Self::Kind(node) => node.remove_unused_images().await,
            Self::Existing(_) => Ok(()),
        }
    }

    /// Writes the manifest of a static pod of a case, `name`, for the kubelet to read.
    ///
    /// # Errors
    /// The disk is full, or the node is not managed by evictlab.
    pub async fn create_static_pod(&self, name: &str, pod: &Value) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.create_static_pod(name, pod),
            Self::Kind(node) => node.create_static_pod(name, pod).await,
            Self::Existing(node) => Err(node.not_managed()),
        }
    }

    /// Deletes the manifest of a static pod of [`Self::create_static_pod`], if it exists. The
    /// kubelet then ends the pod.
    ///
    /// # Errors
    /// The node is not managed by evictlab.
    pub async fn delete_static_pod(&self, name: &str) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.delete_static_pod(name),
            Self::Kind(node) => node.delete_static_pod(name).await,
            Self::Existing(node) => Err(node.not_managed()),
        }
    }

    /// Deletes the manifests of all static pods of [`Self::create_static_pod`], also by earlier
    /// runs. Does nothing on a node that is not managed by evictlab, which cannot have one.
    pub async fn delete_static_pods(&self) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => node.delete_static_pods(),
            Self::Kind(node) => node.delete_static_pods().await,
            Self::Existing(_) => Ok(()),
        }
    }

    /// Activates faults on the node and on the objects of a namespace. Fault times count from now.
    ///
    /// # Errors
    /// The backend does not support faults.
    pub fn inject_faults(&self, faults: &[Fault], namespace: &str) -> Result<(), NodeError> {
        match self {
            Self::Embedded(node) => {
                node.inject_faults(faults, namespace);
                Ok(())
            }
            Self::Kind(node) => Err(NodeError::FaultsUnsupported(node.node.clone())),
            Self::Existing(node) => Err(NodeError::FaultsUnsupported(node.node.clone())),
        }
    }

    /// Ends the faults that were injected into the node, also those that have not begun.
    pub fn end_faults(&self) {
        if let Self::Embedded(node) = self {
            node.end_faults();
        }
    }
}
