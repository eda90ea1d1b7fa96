//! The machine of a node: how containers use memory, disk and PIDs.

mod agnhost;
mod disk;
mod evictlab_stress;
mod exec;
mod lab;
mod memory;
mod oom;
mod options;
mod processes;
mod procfs;
mod properties;
mod recorded;
mod shell;
