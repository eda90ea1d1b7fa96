//! The domain of evictlab's names.

/// Prefix of the names of everything that evictlab adds to a node: labels, annotations, taints and
/// extended resources.
pub const DOMAIN_PREFIX: &str = "evictlab.dev/";
