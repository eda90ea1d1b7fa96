//! A Kubernetes cluster in memory: an API server, controllers, and nodes whose kubelets follow
//! [`evictlab_rules`] for a given version. Tests compare the model with recordings of real
//! kubelets.
//!
//! [`Simulation`] is synchronous and reads no wall clock: [`Simulation::run`] advances the time.
//! The same seed and the same requests at the same times give the same results, byte for byte.
//!
//! ```
//! use std::time::Duration;
//!
//! use evictlab_embedded::apiserver::{self, WriteOptions};
//! use evictlab_embedded::resource::Kind;
//! use evictlab_embedded::sim::Time;
//! use evictlab_embedded::{NodeOptions, Options, Simulation};
//! use serde_json::json;
//!
//! let node = NodeOptions::new("worker", "v1.32.13".parse()?);
//! let epoch = "2026-01-01T00:00:00Z".parse()?;
//! let mut simulation = Simulation::new(Options::new(1, epoch, vec![node]))?;
//! simulation.run(Time::after(Duration::from_secs(1)));
//!
//! let container = json!({"name": "c", "image": "busybox:1.36", "command": ["sleep", "60"]});
//! let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}});
//! simulation.with(|_, _, ctx| {
//!     apiserver::create(ctx, Kind::Pod, "default", pod, WriteOptions::default()).is_ok()
//! });
//! simulation.run(Time::after(Duration::from_secs(30)));
//!
//! let pod = simulation.store.get(Kind::Pod, "default", "p").ok_or("no pod")?;
//! assert_eq!(pod["spec"]["nodeName"], "worker");
//! assert_eq!(pod["status"]["phase"], "Running");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Cluster`] runs a simulation on Tokio's clock and serves its API over HTTP.
//!
//! Modules import only modules above them in this list:
//!
//! | module | contents |
//! | --- | --- |
//! | `sim` | time, event queues, random numbers, notifications |
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

pub mod apiserver;
pub mod cluster;
mod context;
mod controllers;
pub mod defect;
pub mod fault;
pub mod http;
pub mod kubelet;
pub mod machine;
mod node;
mod nodes;
pub mod options;
pub mod resource;
pub mod sim;
mod simulation;
pub mod storage;

#[cfg(test)]
mod error_texts;

pub use cluster::Cluster;
pub use context::SimContext;
pub use defect::{Defect, Defects};
pub use node::Node;
pub use nodes::Nodes;
pub use options::{CgroupVersion, NodeOptions, Options, OptionsError};
pub use simulation::Simulation;
