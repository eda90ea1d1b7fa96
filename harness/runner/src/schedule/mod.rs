//! Running a plan: clusters are made, nodes are leased to cases, and everything that happens goes into one stream.

mod case;
mod host;
mod interrupt;
mod lease;
mod plan;
mod run;

pub use host::{BUDGET, RESERVE};
pub use interrupt::Interrupt;
pub use plan::{Class, Repeat, class};
pub use run::{Clusters, DEADLINE, Keep, Request, free, new_id, run};
