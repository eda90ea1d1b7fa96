//! Running a plan: clusters are made, nodes are leased to cases, and everything that happens goes into one stream.

mod approach;
mod awaited;
mod case;
mod host;
mod images;
mod interrupt;
mod lease;
mod loan;
mod on_cluster;
mod plan;
mod queue;
mod request;
mod rounds;
mod run;
mod steps;

pub use host::{BUDGET, RESERVE};
pub use interrupt::Interrupt;
pub use plan::{Class, Limit, Repeat, class};
pub use request::{Request, new_id};
pub use run::run;
