//! Kubelet configuration: fields that evictlab sets, applying them, and restoring the original.

mod apply;
mod difference;
mod fields;
mod first_sync;

pub use crate::node::ConfigureError;
pub use apply::{AppliedConfig, configure, is_configured, restart, restore, wait_until_running};
pub use difference::{Difference, differences};
pub use evictlab_api_types::merge_fields;
pub use fields::{at_boot, base, with_reservation, with_threshold};
pub use first_sync::missed_first_sync;
