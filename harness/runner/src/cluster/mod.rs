//! Clusters: kind creates and deletes them, the Docker API does the rest.

mod config;
mod docker;
mod error;
mod gc;
mod kind;
mod kind_cluster;
mod kubelet;
mod makers;
mod name;
mod node;
mod owner;
mod record;
mod skew;
mod workers;

pub use config::{Base, ConfigError, KUBELET_LABEL, label_value};
pub use docker::{Container, Docker, DockerError, Output, host as docker_host};
pub use error::ClusterError;
pub use gc::{Found, Removal, collect, find, remove_scratch};
pub use kind::{KindError, OLDEST as OLDEST_KIND, version as kind_version};
pub use kind_cluster::{Cluster, KIND_LABEL, cgroup_v1, claim, containers, delete, kubelets_of};
pub use kubelet::{Kubelet, KubeletSource, KubeletSpec, KubeletSpecError};
pub use name::{ClusterName, ClusterNameError};
pub use node::{Node, NodeError, said};
pub use owner::Owner;
pub use record::{NODE_FILE, Record, Standing, StateDir, StateError};
pub use skew::{Group, SkewError, allowed, group, one_group};
pub use workers::is_ready;
