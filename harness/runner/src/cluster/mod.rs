//! Clusters: where the nodes of a run come from.

mod backend;
mod changes;
mod embedded;
mod error;
mod existing;
mod kind;
mod kubelet;
mod machine;
mod node;
mod proxy;
mod ready;

pub use backend::{Backend, Ended, Ending, Opened, Plan};
pub use changes::DOMAIN;
pub use embedded::{EmbeddedBackend, MINORS, NotModelled, Shape, Words, every_minor, modelled};
pub use error::ClusterError;
pub use existing::{
    Access, Asked, CORDONED, ExistingBackend, ExistingError, Leftover, Reached, Right, Spared, TO_LOOK,
    TO_WATCH, collect_leftovers, leftovers,
};
pub use kind::{
    Base, Cluster, ClusterName, ClusterNameError, Clusters, ConfigError, Container, DEADLINE, Docker,
    DockerError, Found, Group, KIND_LABEL, KUBELET_LABEL, Keep, KindBackend, KindError, Made, NODE_FILE,
    OLDEST_KIND, OLDEST_KUBELET, Output, Owner, Record, Removal, SkewError, Standing, StateDir, StateError,
    allowed, claim, collect, containers, delete, docker_host, find, free, group, has_cgroup_v1, kind_version,
    kubelets_of, label_value, one_group, remove_scratch,
};
pub use kubelet::{Kubelet, KubeletSource, KubeletSpec, KubeletSpecError};
pub use machine::{Borrowed, Machine};
pub use node::{Node, NodeError, said};
pub use proxy::Proxy;
pub use ready::{heard_of, is_ready};
