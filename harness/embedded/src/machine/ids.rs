//! Numbers of the kernel's objects.

/// The PID of a process on its node.
pub(super) type Pid = u64;
/// The number of a container, in the order of creation.
pub(super) type ContainerKey = usize;
/// The number of a cgroup.
pub(super) type CgroupId = usize;
/// The number of a file. Numbers are not reused.
pub(super) type FileId = u64;
/// The number of a file tree.
pub(super) type TreeId = usize;
/// The number of an open file.
pub(super) type OpenFileId = usize;
/// The number of a pipe.
pub(super) type PipeId = usize;
/// The number of a signal.
pub(super) type Signal = u8;

/// The root cgroup.
pub(super) const ROOT: CgroupId = 0;
/// The cgroup of all pods (`kubepods`).
pub(super) const PODS: CgroupId = 1;

pub(super) const SIGHUP: Signal = 1;
pub(super) const SIGINT: Signal = 2;
pub(super) const SIGKILL: Signal = 9;
pub(super) const SIGPIPE: Signal = 13;
pub(super) const SIGTERM: Signal = 15;

/// The number of descriptors that a process can have.
pub(super) const MAX_DESCRIPTORS: usize = 10;
pub(super) const STDIN: usize = 0;
pub(super) const STDOUT: usize = 1;
pub(super) const STDERR: usize = 2;
