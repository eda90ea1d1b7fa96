//! The memory and time that operations take. "Recorded" values come from the statistics of real
//! kubelets on cgroup v1 kernels with pages of 4 KiB. Pairs are anonymous and kernel memory. All
//! sizes are in bytes, all rates in bytes a second.

use std::time::Duration;

use evictlab_rules::quantity::{GIB, KIB, MIB};

/// Kernel memory of a container's cgroup beside its processes. Recorded: a container that runs
/// `sleep`, less what each further `sleep` adds.
pub(super) const CONTAINER_KERNEL: u64 = 112 * KIB;
/// Page cache of an idle container. Recorded: usage less working set.
pub(super) const CONTAINER_CACHE: u64 = 4 * KIB;
/// The pause process of a pod and the pod's cgroup. Recorded: a pod's working set less its
/// containers'.
pub(super) const SANDBOX: (u64, u64) = (40 * KIB, 184 * KIB);
/// A containerd-shim, outside of the pods' cgroups. Recorded: the growth of the node's working set
/// by a pod, less that of the pod.
pub(super) const SHIM: u64 = 6 * MIB;
/// Tasks of a containerd-shim and its helpers. Recorded: `rlimit.curproc`.
pub(super) const SHIM_TASKS: u64 = 12;

/// Kernel memory of a small process: stack, page tables. Recorded with 900 processes.
pub(super) const PROCESS_KERNEL: u64 = 84 * KIB;
/// Anonymous memory of a busybox applet. Recorded: 24 pages.
pub(super) const APPLET: u64 = 96 * KIB;
/// busybox's shell. Recorded beside a `sleep`.
pub(super) const SHELL: (u64, u64) = (116 * KIB, 96 * KIB);
/// agnhost before it allocates. Recorded with totals of 100 and 300 MiB.
pub(super) const AGNHOST: (u64, u64) = (6 * MIB + 400 * KIB, 360 * KIB);
/// `stress` of evictlab's image before it consumes anything.
pub(super) const EVICTLAB_STRESS: (u64, u64) = (120 * KIB, 84 * KIB);
/// kube-proxy. Recorded: the pods of `kube-system`.
pub(super) const KUBE_PROXY: (u64, u64) = (11 * MIB + 600 * KIB, 700 * KIB);
/// Tasks of an idle Go program.
pub(super) const GO_THREADS: u64 = 6;
/// Bytes of memory for each byte of page tables: 8 bytes a page.
pub(super) const PAGE_TABLE_RATIO: u64 = 512;

/// Returns the kernel memory for page cache (page tree, extents, buffers). Recorded: 2.74 % of what
/// was written.
pub(super) fn page_cache_overhead(cache: u64) -> u64 {
    cache * 274 / 10_000
}

/// Files and directories that a runtime creates in a writable layer as mount points. Recorded.
pub(super) const LAYER_INODES: u64 = 6;

/// `fork` and `exec`.
pub(super) const EXEC: Duration = Duration::from_millis(1);
/// A builtin of a shell.
pub(super) const BUILTIN: Duration = Duration::from_micros(5);
/// A write to the container's log: a pipe to the shim, which writes to a file.
pub(super) const LOG_WRITE: Duration = Duration::from_micros(20);
/// The creation of an empty file.
pub(super) const CREATE: Duration = Duration::from_micros(15);
/// A system call.
pub(super) const SYSCALL: Duration = Duration::from_micros(1);
/// The work that a shell does in one step. All of it takes effect at the beginning of the step.
pub(super) const TIME_SLICE: Duration = Duration::from_millis(5);

/// Writes to new anonymous memory.
pub(super) const FILL_RATE: u64 = 2 * GIB;
/// Copies between page cache and processes.
pub(super) const COPY_RATE: u64 = GIB;
/// Reads from `/dev/urandom`.
pub(super) const RANDOM_RATE: u64 = 250 * MIB;
/// Writes to a container's log.
pub(super) const LOG_RATE: u64 = 30 * MIB;

/// Returns the time for `bytes` at a rate, at least 1 µs.
pub(super) fn at_rate(bytes: u64, rate: u64) -> Duration {
    Duration::from_micros(
        bytes.saturating_mul(1_000_000).checked_div(rate).unwrap_or_default().max(u64::from(bytes > 0)),
    )
}
