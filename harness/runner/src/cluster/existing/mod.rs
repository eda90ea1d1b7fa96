//! Clusters that were there before: any kubeconfig. A run makes namespaces in them and removes those; it changes nothing else.

mod access;
mod backend;
mod error;
mod gc;
mod image;
mod look;
mod machine;
mod nodes;
mod reached;
mod rights;
mod sweep;

pub use access::Access;
pub use backend::{Asked, ExistingBackend};
pub use error::ExistingError;
pub use gc::{Leftover, collect_leftovers, leftovers};
pub use nodes::{CORDONED, Spared};
pub use reached::Reached;
pub use rights::{Right, TO_LOOK, TO_WATCH};
