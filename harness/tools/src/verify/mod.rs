//! Compares cases on a kubelet before and after a change, side by side, and documents the result.

mod comparison;
mod conclusion;
mod context;
mod difference;
mod document;
mod relevant_cases;
mod report;

pub use conclusion::{CaseConclusion, Conclusion, VerifyResult};
pub use context::{ComparedKubelet, ReportContext, environment};
pub use relevant_cases::relevant_cases;
pub use report::{Conclusions, VerifyReport};
