//! kind clusters: kind creates and deletes them, the Docker API does the rest.

mod backend;
mod cluster;
mod command;
mod config;
mod docker;
mod gc;
mod limits;
mod machine;
mod make;
mod makers;
mod name;
mod owner;
mod record;
mod skew;
mod workers;

pub use backend::{Clusters, DEADLINE, Keep, KindBackend, Made, free};
pub use cluster::{Cluster, KIND_LABEL, claim, containers, delete, kubelets_of};
pub use command::{KindError, OLDEST as OLDEST_KIND, version as kind_version};
pub use config::{Base, ConfigError, KUBELET_LABEL, label_value};
pub(in crate::cluster) use docker::first_cause;
pub use docker::{Container, Docker, DockerError, Output, has_cgroup_v1, host as docker_host};
pub use gc::{Found, Removal, collect, find, remove_scratch};
pub(in crate::cluster) use machine::available;
pub use name::{ClusterName, ClusterNameError};
pub use owner::Owner;
pub use record::{NODE_FILE, Record, Standing, StateDir, StateError};
pub use skew::{Group, OLDEST_KUBELET, SkewError, allowed, group, one_group};
