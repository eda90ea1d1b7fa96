//! Mutation tests of cases: every case on simulated kubelets with one defect each.

mod execute;
mod matrix;
mod page;
mod schedule;
mod terminal;

pub use execute::{MutantError, Subject};
pub use matrix::{CaseRow, LeftOut, Matrix, MutantCaseOutcome, MutantRow};
pub use page::page;
pub use schedule::{MatrixOptions, run};
pub use terminal::{DefectInfo, list, summary};
