//! A signal as a shell reads it from a Summary, and writes it as a threshold.

use crate::case::{Pressure, Signal};
use crate::stage::{self, Supply};

use super::Machine;

const MIB: u64 = 1024 * 1024;

/// What a new kind worker uses of its memory: 90 to 210 MiB were measured, of kubelets 1.31 to 1.36 with images just brought.
const FRESH: u64 = 192 * MIB;

/// Whether each node of a kind cluster has it for itself.
pub fn of_each_node(signal: Signal) -> bool {
    signal == Signal::MemoryAvailable
}

/// The sed expression that leaves of a Summary without blanks and pods what the kubelet holds against the threshold, as arithmetic.
pub fn available(signal: Signal) -> &'static str {
    match signal {
        Signal::MemoryAvailable => r#"s/.*"memory":{[^}]*"availableBytes":\([0-9]*\).*/\1/"#,
        Signal::NodefsAvailable => r#"s/.*"fs":{[^}]*"availableBytes":\([0-9]*\).*/\1/"#,
        Signal::NodefsInodesFree => r#"s/.*"fs":{[^}]*"inodesFree":\([0-9]*\).*/\1/"#,
        Signal::PidAvailable => r#"s/.*"maxpid":\([0-9]*\),"curproc":\([0-9]*\).*/\1 - \2/"#,
    }
}

/// The unit of thresholds: what one is in the Summary, and how a quantity ends.
pub fn unit(signal: Signal) -> (u64, &'static str) {
    if signal.is_bytes() { (MIB, "Mi") } else { (1, "") }
}

/// The flag of the kubelet, without dashes.
pub fn flag(pressure: &Pressure) -> &'static str {
    if pressure.soft_grace.is_some() { "eviction-soft" } else { "eviction-hard" }
}

/// The threshold of a kind configuration: of memory what suits a new worker on this machine. What disks and process tables have left changes
/// too soon for that: there it is one that is never met.
pub fn beforehand(pressure: &Pressure, machine: &Machine) -> String {
    let (one, unit) = unit(pressure.signal);
    let never = || format!("1{unit}");
    if !of_each_node(pressure.signal) {
        return never();
    }
    let available = machine.memory.saturating_sub(FRESH) / one * one;
    let node = Supply { available, capacity: machine.memory, of_pods: 0 };
    stage::threshold(pressure, node).unwrap_or_else(never)
}
