//! Runs the cases as libtest tests.

mod context;
mod nextest;
mod options;
mod outcome;
mod reaper;
mod run;
mod shared_run;

pub(crate) use run::main;
