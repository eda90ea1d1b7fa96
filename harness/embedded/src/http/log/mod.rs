//! The subresource `pods/log`.

mod container;
mod follow;
mod options;

pub(crate) use follow::log;
