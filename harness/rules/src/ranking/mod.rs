//! The order in which pods are evicted, and the admission of pods to a node under pressure.
//!
//! [`rank_pods`] sorts pods for a [`Signal`](crate::threshold::Signal); [`compare_with_request`]
//! returns the figures behind a pod's rank. [`admission_rejection`] returns the message for a pod
//! that a node does not admit.

mod admission;
mod rank;

pub use admission::{AdmitAttributes, admission_rejection};
pub use rank::{RankedPod, RequestComparison, compare_pods, compare_with_request, process_count, rank_pods};
