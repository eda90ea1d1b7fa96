//! Tables: the output of `kubectl get` (`pkg/printers/internalversion/printers.go`).

mod age;
mod build;
mod columns;
mod events;
mod nodes;
mod pods;

pub(crate) use build::{row, table};
