//! A node's machine: what containers do to memory, disk and process numbers.

#![allow(clippy::unwrap_used)]

mod agnhost;
mod disk;
mod facts;
mod lab;
mod memory;
mod oom;
mod own;
mod processes;
mod properties;
mod recorded;
mod script;
mod sizes;
