//! Observation of a case on its node.

pub(crate) mod cached_condition;
pub(crate) mod collect;
pub(crate) mod end_condition;
pub(crate) mod logs;
pub(crate) mod outage;
pub(crate) mod raw_list;
pub(crate) mod read_budget;
pub(crate) mod watch;
