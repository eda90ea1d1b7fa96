//! Listing and running the tests.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use super::options::{Backend, Test, TestOptions};
use super::outcome::TestOutcome;
use super::shared_run::SharedRun;
use super::{nextest, reaper};

/// Lists or runs the tests. In the reaper process, deletes its cluster instead.
pub(crate) fn main() -> ExitCode {
    if let Some(cluster) = std::env::var_os(reaper::REAPER_VARIABLE) {
        return reaper::main(&cluster.to_string_lossy());
    }
    let arguments = Arguments::from_args();
    let options = match TestOptions::from_environment() {
        Ok(options) => Arc::new(options),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    // nextest runs every test in its own process, and these processes share kind clusters.
    let separate_processes = options.backend == Backend::Kind && std::env::var_os("NEXTEST").is_some();
    let run: Arc<dyn Fn(&Test) -> TestOutcome + Send + Sync> = if separate_processes {
        let options = options.clone();
        Arc::new(move |test| nextest::run(&options, test))
    } else {
        let is_selected = |test: &&Test| {
            let trial = Trial::test(test.name.clone(), || Ok(()));
            !arguments.is_filtered_out(&trial) && !arguments.is_ignored(&trial)
        };
        let selected: Vec<Test> = options.tests.iter().filter(is_selected).cloned().collect();
        let shared_run = SharedRun::new(options.clone(), selected);
        Arc::new(move |test| shared_run.outcome(test))
    };
    let trials = options
        .tests
        .iter()
        .cloned()
        .map(|test| {
            let run = run.clone();
            Trial::ignorable_test(test.name.clone(), move || run(&test).completion())
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Dropping the run waits until its clusters are deleted.
    drop(run);
    conclusion.exit_code()
}
