//! Signals and thresholds in shell scripts.

use evictlab_case::{Pressure, PressureSignal};
use evictlab_rules::quantity::MIB;
use evictlab_runner::pressure::{SignalStatus, eviction_threshold};

use super::host_info::HostInfo;

/// Memory usage of a new kind worker: 90 to 210 MiB measured, for kubelets 1.31 to 1.36 with newly
/// loaded images.
const IDLE_NODE_MEMORY: u64 = 192 * MIB;

/// Returns whether each node of a kind cluster has its own value of the signal.
pub(crate) fn is_per_node(signal: PressureSignal) -> bool {
    signal == PressureSignal::MemoryAvailable
}

/// Returns the sed expression that extracts the available amount, as shell arithmetic, from the
/// node part of a Summary without whitespace.
pub(crate) fn sed_expression(signal: PressureSignal) -> &'static str {
    match signal {
        PressureSignal::MemoryAvailable => r#"s/.*"memory":{[^}]*"availableBytes":\([0-9]*\).*/\1/"#,
        PressureSignal::NodefsAvailable => r#"s/.*"fs":{[^}]*"availableBytes":\([0-9]*\).*/\1/"#,
        PressureSignal::NodefsInodesFree => r#"s/.*"fs":{[^}]*"inodesFree":\([0-9]*\).*/\1/"#,
        PressureSignal::ImagefsAvailable => r#"s/.*"imageFs":{[^}]*"availableBytes":\([0-9]*\).*/\1/"#,
        PressureSignal::ImagefsInodesFree => r#"s/.*"imageFs":{[^}]*"inodesFree":\([0-9]*\).*/\1/"#,
        PressureSignal::PidAvailable => r#"s/.*"maxpid":\([0-9]*\),"curproc":\([0-9]*\).*/\1 - \2/"#,
    }
}

/// Returns the unit of thresholds: its value in the Summary and the suffix of quantities.
pub(crate) fn unit(signal: PressureSignal) -> (u64, &'static str) {
    if signal.is_bytes() { (MIB, "Mi") } else { (1, "") }
}

/// Returns the kubelet flag without dashes.
pub(crate) fn flag(pressure: &Pressure) -> &'static str {
    if pressure.soft_grace.is_some() { "eviction-soft" } else { "eviction-hard" }
}

/// Returns the threshold in the kind configuration: for memory, a suitable value for a new worker
/// on this host. Available disk space and process IDs change too fast; their threshold is never
/// met.
pub(crate) fn initial_threshold(pressure: &Pressure, host: &HostInfo) -> String {
    let (one, unit) = unit(pressure.signal);
    let never_met = || format!("1{unit}");
    if !is_per_node(pressure.signal) {
        return never_met();
    }
    let available = host.memory.saturating_sub(IDLE_NODE_MEMORY) / one * one;
    let node = SignalStatus { available, capacity: host.memory, used_by_pods: 0 };
    eviction_threshold(pressure, node).unwrap_or_else(never_met)
}
