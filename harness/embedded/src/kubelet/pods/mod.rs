//! Pods from admission to their last status.
//!
//! Each pod has a worker that performs one step at a time: it compares the running containers with
//! the spec (`sync`), starts what is missing, and stops what should not run. The PLEG relists the
//! runtime every second; a change there triggers a sync. A restart of the kubelet loses this state,
//! except for `runtime`, which belongs to containerd.

mod admit;
mod backoff;
mod config_updates;
mod dispatch;
mod environment;
mod file_source;
mod hooks;
mod kill;
mod latency;
mod log_rotation;
mod logs;
mod mirror;
mod preempt;
mod proxy;
mod qos;
mod resize;
mod runtime;
mod spec;
mod start;
mod state;
mod status;
mod stop;
mod sync;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use kill::PodEviction;
pub(crate) use logs::{LogPath, PodLogOptions};
pub(crate) use state::{ActivePod, Pods, RunningContainer};
