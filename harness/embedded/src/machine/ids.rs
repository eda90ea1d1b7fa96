//! IDs of the kernel's objects.

/// The PID of a process on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pid(pub u64);

/// The ID of a container, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContainerKey(pub usize);

/// The ID of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CgroupId(pub usize);

/// The ID of a file. IDs are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(pub u64);

/// The ID of a file tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeId(pub usize);

/// The ID of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenFileId(pub usize);

/// The ID of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PipeId(pub u64);

/// The number of a command in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecId(pub(super) u64);

/// The root cgroup.
pub(super) const ROOT_CGROUP: CgroupId = CgroupId(0);
/// The cgroup of all pods (`kubepods`).
pub(super) const PODS_CGROUP: CgroupId = CgroupId(1);
