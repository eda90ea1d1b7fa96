//! Measurements of the kubelet, and the Summary.
//!
//! Statistics have different ages (`pkg/kubelet/stats/cri_stats_provider.go`, cAdvisor):
//!
//! | statistic | measured |
//! | --- | --- |
//! | node, cgroup of all pods | by housekeeping, and by each pass of the eviction manager |
//! | pods, containers | by housekeeping: first at once, then every interval × 1 to 2 |
//! | containers that are idle, or new to cAdvisor | by the runtime, at each request of a Summary |
//! | writable layers | by the runtime's snapshotter, every 10 s |
//! | logs, process IDs | at each request of a Summary |
//! | volumes | every `volumeStatsAggPeriod` × 1 to 2, first when the analyzer finds the pod |
//!
//! Housekeeping slows down to 15 s while nothing changes.

mod collect;
mod group;
pub(in crate::kubelet) mod resource_metrics;
mod state;
mod summary;
mod volumes;

pub(crate) use state::Stats;
