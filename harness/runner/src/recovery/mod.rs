//! Recovery of a node between cases, and measurement of its container start duration.

pub(crate) mod canary;
pub(crate) mod verify_recovered;
