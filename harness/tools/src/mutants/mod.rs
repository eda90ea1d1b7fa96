//! Mutation tests of cases: every case on simulated kubelets with one defect each.

mod defect_info;
mod execute;
mod matrix;
mod page;
mod schedule;
mod terminal;

pub use defect_info::DefectInfo;
pub use execute::{MutantError, Subject};
pub use matrix::{CaseRow, LeftOut, Matrix, MutantCaseOutcome, MutantRow};
pub use page::page;
pub use schedule::{MatrixOptions, run};
pub use terminal::{list, summary};
