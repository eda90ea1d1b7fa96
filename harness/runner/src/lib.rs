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
//! | `case_runner` | one case on one node, from its configuration to its verdict |
//! | `staging` | images and node setup before the pods |
//! | [`pressure`] | eviction thresholds, the ramp that crosses them, and the host's limits |
//! | `observation` | watches, final evidence and container logs |
//! | `recovery` | proof that a node is usable again |
//! | `model_limits` | parts of a case that the model does not run |
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
mod observation;
pub mod pressure;
mod recovery;
mod staging;

#[cfg(test)]
mod error_texts;

pub use dispatch::interrupt::Interrupt;
pub use dispatch::preview::{PlannedCase, PreviewedCase, RunPreview, preview};
pub use dispatch::repeat::{Repeat, StressLimit};
pub use dispatch::request::{RunRequest, SelectionShard, new_run_id};
pub use dispatch::run::run;
pub use model_limits::model_limits;
pub use node_access::exclusivity::{Exclusivity, SharedResources, exclusivity};
pub use pressure::host_budget::HOST_BUDGET;
