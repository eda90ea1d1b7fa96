//! Observation of a case: the loop that watches it, its end, its steps in their order, and the
//! evidence that is collected afterwards.

pub(super) mod cached_condition;
pub(super) mod collect;
pub(super) mod end_condition;
pub(super) mod logs;
pub(super) mod observer;
pub(super) mod outage;
pub(super) mod raw_list;
pub(super) mod read_budget;
pub(super) mod step_queue;
pub(super) mod watch;
