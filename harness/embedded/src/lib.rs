//! A Kubernetes cluster in memory: an API server, controllers, and nodes whose kubelets follow
//! [`evictlab_rules`] for a given version. Tests compare the model with recordings of real
//! kubelets.
//!
//! [`Cluster`] serves the API over HTTP and runs on Tokio's clock, which a test can pause. The
//! model itself reads no wall clock: the same seed and the same requests at the same times give the
//! same results, byte for byte.
//!
//! ```
//! use std::time::Duration;
//!
//! use evictlab_embedded::{Cluster, NodeOptions, ClusterOptions};
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::{Api, Client};
//! use serde_json::{from_value, json};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = NodeOptions::new("worker", "v1.32.13".parse()?);
//! let epoch = "2026-01-01T00:00:00Z".parse()?;
//! let cluster = Cluster::new(ClusterOptions::new(1, epoch, vec![node]))?;
//! let client = Client::new(cluster.router(), "default");
//! tokio::spawn(async move { cluster.drive().await });
//! tokio::time::sleep(Duration::from_secs(1)).await;
//!
//! let container = json!({"name": "c", "image": "busybox:1.36", "command": ["sleep", "60"]});
//! let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}});
//! let pods: Api<Pod> = Api::default_namespaced(client);
//! pods.create(&Default::default(), &from_value(pod)?).await?;
//! tokio::time::sleep(Duration::from_secs(30)).await;
//!
//! let pod = pods.get("p").await?;
//! assert_eq!(pod.spec.ok_or("no spec")?.node_name.as_deref(), Some("worker"));
//! assert_eq!(pod.status.ok_or("no status")?.phase.as_deref(), Some("Running"));
//! # Ok(())
//! # }
//! ```
//!
//! Modules import only modules above them in this list:
//!
//! | module | contents |
//! | --- | --- |
//! | `sim` | time, event queues, random numbers |
//! | `resource` | object kinds, selectors, tolerations, node affinity, conditions |
//! | `storage` | objects, their history and watches |
//! | `fault` | active faults and their effects on requests, watches and events |
//! | `defect` | defects of a kubelet, for mutation tests of cases |
//! | `options`, `context` | cluster options; the state of a simulation that its parts share |
//! | `machine` | control groups, file system, processes and programs of a node |
//! | `apiserver` | defaults, validation, admission and deletion of objects |
//! | `controllers` | scheduler, node lifecycle, garbage collection, workloads |
//! | `kubelet` | pods, statistics, eviction, node status |
//! | `node`, `nodes` | a machine with its kubelet; all of them, with their next event |
//! | `simulation` | the cluster and its events in order |
//! | `cluster` | the simulation on Tokio's clock |
//! | `http` | the Kubernetes API over HTTP |

#![deny(unreachable_pub)]

mod apiserver;
mod cluster;
mod context;
mod controllers;
mod defect;
mod fault;
mod http;
mod kubelet;
mod machine;
mod node;
mod nodes;
mod options;
mod resource;
mod sim;
mod simulation;
mod storage;

#[cfg(test)]
mod error_texts;
#[cfg(test)]
mod tests;

pub use cluster::Cluster;
pub use context::SimContext;
pub use defect::{Area, Defect, Defects, UnknownDefectError};
pub use fault::FaultScope;
pub use http::{Access, AccessError, serve_http};
pub use kubelet::{Housekeeping, Kubelet};
pub use machine::{
    Cgroup, ContainerId, ContainerSpec, ExecError, ExecId, ExecResult, Imagefs, Machine, MemoryUse, Mount,
    NoSpace, PodUid, unsupported_command,
};
pub use node::Node;
pub use options::{CgroupVersion, ClusterOptions, NodeOptions, OptionsError};
pub use resource::Kind;
pub use sim::SimTime;
