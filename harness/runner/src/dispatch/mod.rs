//! Order of clusters and cases, queues of nodes, retries, and interruption.

pub(crate) mod case_queue;
pub(crate) mod cluster_run;
pub(crate) mod failures;
pub(crate) mod interrupt;
pub(crate) mod plan_cases;
pub(crate) mod preview;
pub(crate) mod repeat;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod tries;
pub(crate) mod worker;
