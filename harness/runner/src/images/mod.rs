//! Images: which one a version or a case's short name stands for, and bringing them to where they are needed.

mod bring;
mod lock;
pub mod own;
mod plan;
mod pull;
mod resolve;

pub use bring::{ARCHIVE, BringError, bring, unpack};
pub use lock::{Lock, LockError, Places};
pub use plan::planned;
pub use pull::{PullError, have, pull};
pub use resolve::{Looked, Resolve, ResolveError};
