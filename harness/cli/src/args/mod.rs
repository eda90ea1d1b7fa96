//! Arguments that several commands share.

pub(crate) mod backend;
pub(crate) mod baseline;
pub(crate) mod bisect;
pub(crate) mod candidates;
pub(crate) mod commits;
pub(crate) mod embedded;
pub(crate) mod existing;
pub(crate) mod job;
pub(crate) mod kind_cluster;
pub(crate) mod kubelet_versions;
pub(crate) mod kubelets;
pub(crate) mod output;
pub(crate) mod selection;
pub(crate) mod target;
pub(crate) mod thresholds;
pub(crate) mod values;
