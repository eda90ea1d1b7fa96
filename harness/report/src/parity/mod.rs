//! Agreement of modelled kubelets with real ones: verdicts and messages, case by case.

mod agreement;
mod kubelet_results;
mod message_shape;
mod table;

pub use agreement::{Agreement, CaseAgreement, ComparedCase, KubeletParity, parity};
pub use kubelet_results::{CaseResults, KubeletResults, KubeletResultsError};
pub use table::{parity_details, parity_table};
