//! What things cost, in time and memory. Where it says "recorded", the figure comes from kubelets' answers on cgroup v1 kernels with pages of 4 KiB.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Charged to a container's group beside its processes: recorded as what `sleep` alone takes less what each further one takes.
pub(super) const CONTAINER_KERNEL: u64 = 112 * KIB;
/// Page cache of a container that only idles: recorded as usage less working set.
pub(super) const CONTAINER_CACHE: u64 = 4 * KIB;
/// The pause process of a pod and the pod's group: recorded as a pod's working set less its containers'.
pub(super) const SANDBOX: (u64, u64) = (40 * KIB, 184 * KIB);
/// A containerd-shim, outside the pods' groups: recorded as the node's working set with a pod less that without, less the pod's.
pub(super) const SHIM: u64 = 6 * MIB;
/// Its threads and those of its helpers count for the node: recorded in `rlimit.curproc`.
pub(super) const SHIM_TASKS: u64 = 12;

/// Stack, page tables and so on of a small process: recorded with 900 of them.
pub(super) const PROCESS_KERNEL: u64 = 84 * KIB;
/// busybox's applets: 24 pages, recorded.
pub(super) const APPLET: u64 = 96 * KIB;
/// busybox's shell: recorded beside a `sleep`.
pub(super) const SHELL: (u64, u64) = (116 * KIB, 96 * KIB);
/// agnhost before it allocates: recorded with totals of 100 and 300 MiB.
pub(super) const AGNHOST: (u64, u64) = (6 * MIB + 400 * KIB, 360 * KIB);
/// The program of our own image, before it takes anything.
pub(super) const OURS: (u64, u64) = (120 * KIB, 84 * KIB);
/// kube-proxy: recorded of the pods of `kube-system`.
pub(super) const PROXY: (u64, u64) = (11 * MIB + 600 * KIB, 700 * KIB);
/// What a Go program with little to do has of threads.
pub(super) const GO_THREADS: u64 = 6;
/// Page tables take 8 bytes a page.
pub(super) const PAGE_TABLES: u64 = 512;
/// The kernel's slabs for page cache (the tree of pages, extents, buffers): recorded as 2.74 % of what was written.
pub(super) fn slab(cache: u64) -> u64 {
    cache * 274 / 10_000
}

/// The directories and files that a runtime makes in a writable layer (mount points): recorded.
pub(super) const LAYER_INODES: u64 = 6;

/// From `fork` to the end of `exec`.
pub(super) const EXEC: Duration = Duration::from_millis(1);
/// A builtin of a shell.
pub(super) const BUILTIN: Duration = Duration::from_micros(5);
/// A write to the container's log: a pipe to the shim, which wakes up and writes to a file.
pub(super) const LOG_WRITE: Duration = Duration::from_micros(20);
/// Making an empty file.
pub(super) const CREATE: Duration = Duration::from_micros(15);
/// A system call.
pub(super) const SYSCALL: Duration = Duration::from_micros(1);
/// The shortest turn of who has much to do: what it does within one is done at its beginning or end.
pub(super) const TURN: Duration = Duration::from_millis(5);

/// Bytes a second into anonymous memory, fresh pages included.
pub(super) const FILL_RATE: u64 = 2 << 30;
/// Bytes a second between page cache and processes.
pub(super) const COPY_RATE: u64 = 1 << 30;
/// Bytes a second from `/dev/urandom`.
pub(super) const RANDOM_RATE: u64 = 250 << 20;
/// Bytes a second into a container's log.
pub(super) const LOG_RATE: u64 = 30 << 20;

/// How long so many bytes take.
pub(super) fn at_rate(bytes: u64, rate: u64) -> Duration {
    Duration::from_micros(
        bytes.saturating_mul(1_000_000).checked_div(rate).unwrap_or_default().max(u64::from(bytes > 0)),
    )
}
