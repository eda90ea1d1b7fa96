//! Our own image: built from the source tree, and put into nodes without a registry.

mod archive;
mod build;
mod cargo;
mod load;

pub use archive::{Archive, Built, architecture};
pub use build::{BuildError, Words, build, source};
pub use load::{LoadError, load};

/// Its whole name. No registry has it: `localhost` keeps whoever looks for it from asking another machine.
pub const NAME: &str = "localhost/evictlab/stress:1";
