//! Watches the nodes of any cluster: available amounts and thresholds, the pods in eviction order,
//! and changes. Modifies nothing.

mod bounded_set;
mod change;
mod eviction;
mod focus;
mod inspect;
mod keyboard;
mod kubelet_client;
mod metrics;
mod node;
mod node_page;
mod node_table;
mod options;
mod pod_fields;
mod pod_index;
mod poller;
mod rank_reason;
mod ranking;
mod reading;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod view;
mod watch_loop;
mod watches;

pub use inspect::inspect;
pub use keyboard::{Key, Keyboard};
pub use metrics::{MetricsRequests, serve_metrics};
pub use node::NodeView;
pub use options::{ViewOptions, WatchOptions};
pub use ranking::{EvictionCandidate, ExemptPod};
pub use reading::{Reading, ThresholdStatus};
pub use run::{WatchError, watch};
pub use view::WatchView;
pub use watch_loop::WatchInputs;
