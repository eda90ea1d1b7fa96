//! The kind backend: `kind` creates and deletes clusters, everything else uses the Docker API.

mod backend;
mod cluster;
mod command;
mod config;
mod containers;
mod delete;
mod gc;
mod heartbeat;
mod kind_processes;
mod name;
mod new_cluster;
mod node_disk;
mod ownership;
mod record;
mod skew;
mod start_stop;
mod start_watch;
mod state_dir;
mod workers;

pub(crate) use backend::KindHandle;
pub use backend::{ClusterSource, KeepPolicy, KindBackend, KindOptions, ensure_names_unused};
pub use cluster::{Cluster, NewCluster, kubelets_of};
pub use command::version as kind_version;
pub use config::{KindConfig, label_value};
pub use containers::{KIND_LABEL, containers};
pub use delete::{claim, delete};
pub use gc::{KnownCluster, Removal, collect, dead_scratch_containers, find, planned_removal};
pub use name::{ClusterName, ClusterNameError};
pub use node_disk::{HOST_RESERVE, NodeDiskError, has_own_disk, separate_disks};
pub use record::{ClusterRecord, ClusterState};
pub use skew::{
    KubeletGroup, MAX_KUBELET_SKEW, SkewError, group_by_skew, is_skew_allowed, single_group, skew_policy,
};
pub use start_stop::{start, stop};
pub use start_watch::StartWatch;
pub use state_dir::StateDir;
