//! Tables: the output of `kubectl get` (`pkg/printers/internalversion/printers.go`).

mod age;
mod build;
mod columns;
mod events;
mod nodes;
mod pods;
mod workloads;

pub(crate) use build::{row, table};
