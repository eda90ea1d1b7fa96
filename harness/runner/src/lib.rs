//! Runs cases on the nodes of a cluster and reports each verdict as an event.
//!
//! [`run`] opens the clusters of a backend one after the other. On each cluster it prepares every
//! node, then executes the selected cases. A case configures its kubelet, creates its pods,
//! observes them until the outcome is known, and is judged. The node recovers before the next case.
//!
//! | module | task |
//! | --- | --- |
//! | `dispatch` | order of clusters and cases, queues, retries, interruption |
//! | `node_access` | exclusive or shared use of a node by cases, what they may do to it, and its state between them |
//! | `node_setup` | images of the cases, and changes of a node before the pods |
//! | `case_runner` | one case on one node: configuration, pods, steps, verdict, cleanup |
//! | `case_runner/observation` | the loop that observes a case, its end, its watches, logs and final evidence |
//! | [`pressure`] | eviction thresholds, the ramp that crosses them, and the host's limits |
//! | `recovery` | proof that a node is usable again |
//! | `model_limits` | parts of a case that the model does not run |
//!
//! # Limits of a case
//!
//! | limit | default | file |
//! | --- | --- | --- |
//! | time without progress (`timeout`) | 40 s | `case_runner/observation/observer.rs` |
//! | time with or without progress (`deadline`) | 120 s and the times that the case states | `case/src/deadline.rs` |
//! | factor of both on a slow node, at most | 6 | `case_runner/runner.rs` |
//! | observation after the outcome of a known bug | 12 s | `case_runner/observation/observer.rs` |
//! | interval of Summaries | 0.5 s; 2 s on shared and external nodes | `case_runner/observation/observer.rs` |
//! | evidence after the end | 30 s | `case_runner/observation/read_budget.rs` |
//! | logs of a container, of a case | 4 MiB, 64 MiB | `case_runner/observation/logs.rs` |
//! | log of the kubelet | 50,000 lines | `cluster/src/node/backend/kind.rs` |
//! | command of an `exec` step | 60 s | `cluster/src/node/backend/node_backend.rs` |
//! | node ready after a restart of its kubelet, without progress | 60 s | `case_runner/configure.rs` |
//! | kubelet starts, configurations | 3, 3 | `case_runner/configure.rs` |
//! | deletion of the namespace, without progress | 60 s | `case_runner/runner.rs` |
//! | steady statistics before an exclusive case | 45 s | `node_access/steady_statistics.rs` |
//! | recovery of the node, without progress | 90 s | `recovery/verify_recovered.rs` |
//! | canary pod, without progress | 120 s | `recovery/canary.rs` |
//! | pods without limits of their own | 256 MiB of memory, 1 GiB of disk | `cluster/src/workload/default_limits.rs` |
//! | processes, inodes on external nodes | 10,000, 1,000,000 | `case_runner/guard.rs` |
//! | shared cases on a node; on all nodes of a host | 8, or 4 for each processor; 8 for each processor | `dispatch/plan_cases.rs` |
//! | shared cases on all nodes of a model | 32 | `dispatch/plan_cases.rs` |
//! | tries of a case whose pressure is faster than the statistics | 4 | `dispatch/tries.rs` |
//!
//! # Example
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use evictlab_case::LoadedCase;
//! use evictlab_cluster::{Backend, images::ImageCatalog};
//! use evictlab_report::EventSender;
//! use evictlab_runner::{Interrupt, Repeat, RunRequest, new_run_id, run};
//!
//! # async fn example(
//! #     backend: Backend, cases: Vec<Arc<LoadedCase>>, image_catalog: Arc<ImageCatalog>,
//! #     events: EventSender,
//! # ) -> std::io::Result<()> {
//! let request = RunRequest {
//!     repeat: Repeat::UntilConclusive { verdicts: 1, attempts: 3 },
//!     timeout: Some(Duration::from_secs(30 * 60)),
//!     ..RunRequest::new(new_run_id(), cases, backend, image_catalog)
//! };
//! run(request, events, Interrupt::listen()?).await;
//! # Ok(())
//! # }
//! ```

#![deny(unreachable_pub)]

mod case_runner;
mod dispatch;
mod model_limits;
mod node_access;
mod node_setup;
pub mod pressure;
mod recovery;
mod skip_reason;

#[cfg(test)]
mod error_texts;

pub use dispatch::interrupt::Interrupt;
pub use dispatch::preview::{PlannedCase, PreviewedCase, RunPreview, preview};
pub use dispatch::repeat::{Repeat, StressLimit};
pub use dispatch::request::{RunRequest, SelectionShard, VanishedCase, new_run_id};
pub use dispatch::run::run;
pub use model_limits::model_limits;
pub use node_access::exclusivity::{Exclusivity, SharedResources, exclusivity};
pub use pressure::host_budget::HOST_BUDGET;
