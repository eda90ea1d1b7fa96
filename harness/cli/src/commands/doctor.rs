//! `evictlab doctor`

use std::process::ExitCode;

use comfy_table::{ContentArrangement, Table, presets};
use evictlab_runner::doctor::{Diagnosis, Patient, State, examine};
use evictlab_runner::report::{Manners, exit_code};
use evictlab_runner::schedule::Interrupt;

use super::kubelets::KubeletArgs;
use crate::failure::Failure;
use crate::output::print;

/// Say whether this machine and its Docker host are fit for kind clusters, and what to do where they are not
///
/// The embedded cluster needs nothing.
///
/// Starts one short privileged container of a node image that is in Docker already, and removes it; changes nothing else.
///
/// Exit status: 0 fit (there may be warnings); 4 unfit.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab doctor
  evictlab doctor --kubelet v1.36 --kubelet ./kubelet
  evictlab doctor --json")]
pub struct Args {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Print a JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Examines, and prints what was found.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let lock = args.kubelets.lock()?;
    let overrides = args.kubelets.images().overrides();
    let specs = args.kubelets.specs(&[]);
    let patient = Patient { kubelets: &specs, lock: &lock, overrides: &overrides };
    let interrupt = Interrupt::listen().map_err(|error| Failure::new(error, exit_code::INFRASTRUCTURE))?;
    let diagnosis = examine(patient, &interrupt.stop).await;
    if interrupt.stop.is_cancelled() {
        return Ok(exit_code::INTERRUPTED.into());
    }
    if args.json {
        let text = serde_json::to_string_pretty(&diagnosis)
            .map_err(|error| Failure::new(error, exit_code::INFRASTRUCTURE))?;
        print(text)?;
    } else {
        print(table(&diagnosis, Manners::of_stdout().colour))?;
        print(if diagnosis.fit { "\nfit for kind clusters" } else { "\nnot fit for kind clusters" })?;
    }
    Ok(if diagnosis.fit { ExitCode::SUCCESS } else { exit_code::INFRASTRUCTURE.into() })
}

fn table(diagnosis: &Diagnosis, colour: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some((width, _)) = terminal_size::terminal_size() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    }
    for check in &diagnosis.checks {
        table.add_row([check.state.to_string(), check.about.to_string(), check.found.clone()]);
        if let Some(advice) = &check.advice {
            table.add_row([String::new(), String::new(), format!("→ {advice}")]);
        }
    }
    // Painted last: the table would count an escape sequence as columns.
    table.trim_fmt().lines().map(|line| painted(line, colour)).collect::<Vec<_>>().join("\n")
}

/// A line with its first column in the state's colour; the other lines of a row have nothing there.
fn painted(line: &str, colour: bool) -> String {
    let states = [(State::Ok, "32"), (State::Warn, "33"), (State::Fail, "31"), (State::Unknown, "2")];
    let first = line.trim_start();
    let indent = &line[..line.len() - first.len()];
    let state = states.iter().map(|(state, code)| (state.to_string(), code));
    match state.filter(|_| indent.len() < 2 && colour).find(|(word, _)| first.starts_with(word)) {
        Some((word, code)) => format!("{indent}\x1b[{code}m{word}\x1b[0m{}", &first[word.len()..]),
        None => line.to_owned(),
    }
}
