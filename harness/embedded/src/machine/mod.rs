//! The machine of a node: its kernel with processes, cgroups and file systems. Containers and pods
//! are cgroups and file trees here; the kubelet decides what runs in them. Programs implement a
//! trait of the kernel, which runs them without knowing them.

mod calibration;
mod cgroups;
mod container;
mod data;
mod disk;
mod errno;
mod exec;
mod exec_result;
mod ids;
mod interface;
mod io;
mod kernel;
mod lifecycle;
mod log;
mod node_fs;
mod oom;
mod open_file;
mod paths;
mod procfs;
mod program;
mod runtime;
mod shell;
mod size;
mod step;
#[cfg(test)]
mod tests;
mod types;

pub use self::disk::NoSpace;
pub use self::exec_result::{ExecError, ExecResult};
pub use self::ids::ExecId;
pub use self::interface::Machine;
pub use self::program::unsupported_command;
pub(crate) use self::step::{SIGKILL, SIGTERM};
pub use self::types::{Cgroup, ContainerId, ContainerSpec, Imagefs, MemoryUse, Mount, PodUid};
pub(crate) use self::types::{DiskUse, Filesystem, LogLine, MachineEvent};
