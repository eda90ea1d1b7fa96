//! Tables: the output of `kubectl get` (`pkg/printers/internalversion/printers.go`).

mod age;
mod columns;
mod events;
mod nodes;
mod pods;
mod render;

pub(crate) use render::{row, table};
