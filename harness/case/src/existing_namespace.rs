//! Objects that evictlab adds to the namespace of a case on an existing cluster.

/// Name of the quota of the namespace.
pub const QUOTA_NAME: &str = "evictlab";
/// Name of the Job whose deletion deletes the objects of the case.
pub const EXPIRY_NAME: &str = "evictlab-expiry";
/// Maximum number of pods in the namespace, ended ones included: more than any case creates on
/// purpose.
pub const MAX_CREATED_PODS: u32 = 300;
