//! Running a plan: clusters are made, nodes are leased to cases, and everything that happens goes into one stream.

mod case;
mod host;
mod interrupt;
mod plan;
mod run;
mod teller;

pub use host::Host;
pub use interrupt::Interrupt;
pub use plan::{Class, Repeat, class};
pub use run::{Clusters, Keep, Request, run};
pub use teller::Teller;
