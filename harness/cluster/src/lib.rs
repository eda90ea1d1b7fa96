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
//! Modules import only modules of lower layers, and files of their own folder.
//!
//! | layer | modules |
//! | --- | --- |
//! | 10 | `backend`: [`Backend`], one of the three; `served`: embedded clusters of other processes |
//! | 9 | `embedded`, `kind`, `existing`: the backends |
//! | 8 | `plan`: clusters of a run |
//! | 7 | `error`: the errors of the backends; [`node_resources`]: file systems and huge pages that a case asks for |
//! | 6 | [`kubelet_config`]: configures kubelets |
//! | 5 | `node`: [`Node`] and [`NodeBackend`], the machine under it |
//! | 4 | [`images`]: node images and case images; `probe`: pods that test a node; `run_lease`: the Lease of a run |
//! | 3 | `docker`: Docker API; [`workload`]: namespaces and pods |
//! | 2 | `owner`: the process that owns a cluster |
//! | 1 | [`wait`], `answer_limit`, `api_client`, `api_error`, `bounded_name`, `job_index`, `kubelet`, `loop_file_system`, `object_list`, `sha256`, `timed_command`, `watch` |

#![deny(unreachable_pub)]

mod answer_limit;
mod api_client;
mod api_error;
mod backend;
mod bounded_name;
mod docker;
mod embedded;
mod error;
mod existing;
pub mod images;
mod job_index;
mod kind;
mod kubelet;
pub mod kubelet_config;
mod loop_file_system;
mod node;
pub mod node_resources;
mod object_list;
mod owner;
mod plan;
mod probe;
mod run_lease;
mod served;
mod sha256;
mod timed_command;
mod typed;
pub mod wait;
mod watch;
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
pub use error::{ClusterError, ConfigError, ExistingError, KindError, OLDEST_KIND, StartProblem, StateError};
pub use existing::{
    CASE_PERMISSIONS, ClusterAccess, ClusterClient, ExistingBackend, ExistingOptions, Leftover,
    NodePermissions, OPTIONAL_PERMISSIONS, Permission, READ_PERMISSIONS, RUN_PERMISSIONS, WATCH_PERMISSIONS,
    collect_leftovers, leftovers,
};
pub use images::CANARY_IMAGE;
pub use job_index::{JOB_VARIABLE, JobIndex, JobIndexError, JobName};
pub use kind::{
    Cluster, ClusterName, ClusterNameError, ClusterRecord, ClusterSource, ClusterState, HOST_RESERVE,
    KIND_LABEL, KeepPolicy, KindBackend, KindConfig, KindOptions, KnownCluster, KubeletGroup,
    MAX_KUBELET_SKEW, NewCluster, NodeDiskError, Removal, SkewError, StartWatch, StateDir, claim, collect,
    containers, dead_scratch_containers, delete, ensure_names_unused, find, group_by_skew, has_own_disk,
    is_skew_allowed, kind_version, kubelets_of, label_value, planned_removal, separate_disks, single_group,
    skew_policy, start, stop,
};
pub use kubelet::{Kubelet, KubeletSource, KubeletSpec, KubeletSpecError};
pub use node::{
    CORDONED, ExternalNode, FileSystemsError, KubeletProxy, MAX_KUBELET_LOG_LINES, MetricLine, Node,
    NodeBackend, NodeError, NodeFileSystems, NodeReversal, PressureForbidden, has_condition, is_ready,
    last_heartbeat, system_taints, taints,
};
pub use object_list::ObjectList;
pub use owner::Owner;
pub use plan::{ClusterPlan, ClusterProgress, NodeRequirements, TeardownContext, TeardownOutcome};
pub use probe::{ProbeError, ProbePod, ProbePods, available_memory};
pub use run_lease::{LeaseLost, RunLease};
pub use served::{ListedCluster, ServedCluster, ServedError, ServerCommand};
pub use sha256::sha256_hex;
pub use timed_command::output_within;
pub use typed::Typed;
pub use watch::{WatchBackoff, WatchDenied};
pub use workload::{GracePeriod, without_managed_fields};
