//! The verbs of objects.

mod delete;
mod get;
mod list;
mod page;
mod patch;
mod pods;
mod watch;
mod write;

pub use delete::{delete, delete_collection};
pub use get::get;
pub use list::list;
pub use patch::patch;
pub use pods::{bind, evict};
pub use watch::watch;
pub use write::{create, finalize, update};

use super::respond::View;
use crate::store::Kind;

/// Where a request goes.
#[derive(Clone, Copy)]
pub struct Place {
    /// How objects are shown.
    pub view: View,
    /// What they are in the store.
    pub kind: Kind,
}
