//! Clusters and nodes for test runs: embedded (modelled), kind (Docker) and existing clusters.
//!
//! A [`Backend`] provides the clusters of a run. [`Backend::open`] returns a [`ClusterHandle`] with
//! ready [`Node`]s; [`ClusterHandle::end`] deletes the cluster or restores its nodes. Kubelets are
//! named by [`KubeletSpec`], the argument of `--kubelet`:
//!
//! ```
//! use evictlab_cluster::images::ImageCatalog;
//! use evictlab_cluster::{EmbeddedOptions, KubeletSpec, modelled_kubelets};
//!
//! let specs: Vec<KubeletSpec> = vec!["v1.31".parse()?, "v1.32.13".parse()?];
//! let kubelets = modelled_kubelets(&specs, &ImageCatalog::load(None)?)?;
//! let options = EmbeddedOptions { kubelets, nodes: 1, ..EmbeddedOptions::default() };
//! let names: Vec<String> = options.names().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["v1-31-worker", "v1-32-worker"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! Modules import only modules of lower layers, and files of their own folder. The exception is
//! [`ClusterError`], which wraps the errors of the backends and imports nothing else of them.
//!
//! | layer | modules |
//! | --- | --- |
//! | 9 | `backend`: [`Backend`], one of the three; `served`: embedded clusters of other processes |
//! | 8 | `embedded`, `kind`, `existing`: the backends |
//! | 7 | `plan`: clusters of a run |
//! | 6 | `error`: [`ClusterError`] |
//! | 5 | [`kubelet_config`]: configures kubelets |
//! | 4 | `node`: [`Node`] and [`NodeBackend`], the machine under it |
//! | 3 | [`images`]: node images and case images, `probe`: pods that test a node |
//! | 2 | `docker`: Docker API, [`workload`]: namespaces and pods |
//! | 1 | [`wait`], `api_error`, `kubelet`, `meminfo`, `owner` |

#![deny(unreachable_pub)]

mod api_error;
mod backend;
mod docker;
mod embedded;
mod error;
mod existing;
pub mod file_systems;
pub mod images;
mod job_index;
mod kind;
mod kubelet;
pub mod kubelet_config;
mod listed;
mod loop_file_system;
mod meminfo;
mod node;
mod owner;
mod plan;
mod probe;
mod run_lease;
mod served;
mod sha256;
pub mod wait;
pub mod workload;

#[cfg(test)]
mod error_texts;

pub use api_error::api_error_message;
pub use backend::{Backend, ClusterHandle};
pub use docker::{Container, Docker, DockerError, ExecOutput, cgroup_version, docker_host};
pub use embedded::{
    EmbeddedBackend, EmbeddedOptions, MODELLED_MINORS, NotModelledError, ReproCommand, every_minor,
    modelled_kubelets, newest_patch,
};
pub use error::ClusterError;
pub use existing::{
    CASE_PERMISSIONS, CORDONED, ClusterAccess, ClusterClient, ExistingBackend, ExistingError,
    ExistingOptions, Leftover, NodePermissions, Permission, READ_PERMISSIONS, RUN_PERMISSIONS,
    WATCH_PERMISSIONS, collect_leftovers, leftovers,
};
pub use images::CANARY_IMAGE;
pub use job_index::{JOB_VARIABLE, JobIndex, JobName};
pub use kind::{
    Cluster, ClusterName, ClusterNameError, ClusterRecord, ClusterSource, ClusterState, ConfigError,
    HOST_RESERVE, KIND_LABEL, KUBELET_LABEL, KeepPolicy, KindBackend, KindConfig, KindError, KindOptions,
    KnownCluster, KubeletGroup, NODE_FILE, NewCluster, NodeDiskError, OLDEST_KIND, OLDEST_KUBELET, Removal,
    SkewError, StartProblem, StartWatch, StateDir, StateError, claim, collect, containers, delete,
    ensure_names_unused, find, group_by_skew, has_own_disk, is_skew_allowed, kind_version, kubelets_of,
    label_value, remove_scratch, separate_disks, single_group,
};
pub use kubelet::{Kubelet, KubeletSource, KubeletSpec, KubeletSpecError};
pub use listed::ListedCluster;
pub use node::{
    ExternalNode, FileSystems, FileSystemsError, KubeletProxy, MAX_KUBELET_LOG_LINES, MetricLine, Node,
    NodeBackend, NodeError, PressureForbidden, is_ready, last_heartbeat,
};
pub use owner::Owner;
pub use plan::{ClusterPlan, ClusterProgress, NodeRequirements, TeardownContext, TeardownOutcome};
pub use probe::{ProbeError, ProbePod, ProbePods};
pub use run_lease::RunLease;
pub use served::{ServedCluster, ServedError};
pub use sha256::sha256_hex;
pub use wait::WatchBackoff;
pub use workload::without_managed_fields;
