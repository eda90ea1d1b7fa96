//! The harness behind libtest's manners.

mod asked;
mod outcome;
mod process;
mod reaper;
mod whole;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use asked::{Asked, Backend, Test};
use outcome::Outcome;

/// Lists or runs the tests.
pub fn main() -> ExitCode {
    if let Some(cluster) = std::env::var_os(reaper::VARIABLE) {
        return reaper::main(&cluster.to_string_lossy());
    }
    let arguments = Arguments::from_args();
    let asked = match Asked::from_environment() {
        Ok(asked) => Arc::new(asked),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    // nextest runs every test in a process of its own; kind clusters are then shared by them.
    let alone = asked.backend == Backend::Kind && std::env::var_os("NEXTEST").is_some();
    let run: Arc<dyn Fn(&Test) -> Outcome + Send + Sync> = match alone {
        true => {
            let asked = asked.clone();
            Arc::new(move |test| process::run(&asked, test))
        }
        false => {
            let chosen = |test: &&Test| {
                let trial = Trial::test(test.name.clone(), || Ok(()));
                !arguments.is_filtered_out(&trial) && !arguments.is_ignored(&trial)
            };
            let chosen: Vec<Test> = asked.tests.iter().filter(chosen).cloned().collect();
            let whole = whole::Whole::new(asked.clone(), chosen);
            Arc::new(move |test| whole.outcome(test))
        }
    };
    let trials = asked
        .tests
        .iter()
        .cloned()
        .map(|test| {
            let run = run.clone();
            Trial::ignorable_test(test.name.clone(), move || run(&test).completion())
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The clusters go with the run that made them; nobody else would wait for that.
    drop(run);
    conclusion.exit_code()
}
