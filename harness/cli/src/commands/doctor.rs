//! `evictlab doctor`

use std::process::ExitCode;

use comfy_table::{ContentArrangement, Table, presets};
use evictlab_report::{Style, exit_code};
use evictlab_runner::Interrupt;
use evictlab_tools::doctor::{CheckState, Diagnosis, DoctorOptions, diagnose};

use crate::args::kubelets::KubeletArgs;
use crate::failure::Failure;
use crate::output::{is_stdout_colored, print, print_colored, print_json, stdout_width};

/// Check whether this machine and its Docker host can run kind clusters
///
/// Prints a remedy for each problem. The embedded cluster has no requirements.
///
/// Starts one privileged container for a short time, from a node image that is already in Docker,
/// and removes it; changes nothing else.
///
/// Exit status: 0 no check failed (there may be warnings); 4 a check failed; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab doctor
  evictlab doctor --kubelet v1.36 --kubelet ./kubelet
  evictlab doctor --json")]
pub(crate) struct Args {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Print a JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the checks and prints their results.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let catalog = args.kubelets.image_catalog()?;
    let overrides = args.kubelets.images().overrides();
    let specs = args.kubelets.specs(&[]);
    let options = DoctorOptions { kubelets: &specs, catalog: &catalog, overrides: &overrides };
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let diagnosis = diagnose(options, &interrupt.stop).await;
    if interrupt.stop.is_cancelled() {
        return Ok(exit_code::INTERRUPTED.into());
    }
    if args.json {
        print_json(&diagnosis)?;
    } else {
        print_colored(table(&diagnosis, is_stdout_colored()))?;
        print(if diagnosis.fit {
            "\nready for kind clusters; run cases with: evictlab run --backend kind"
        } else {
            "\nnot ready for kind clusters"
        })?;
    }
    Ok(if diagnosis.fit { ExitCode::SUCCESS } else { exit_code::INFRASTRUCTURE.into() })
}

fn table(diagnosis: &Diagnosis, color: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = stdout_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for check in &diagnosis.checks {
        table.add_row([check.state.to_string(), check.subject.to_string(), check.finding.clone()]);
        if let Some(remedy) = &check.remedy {
            table.add_row([String::new(), String::new(), format!("→ {remedy}")]);
        }
    }
    // Colors come last: the table would count an escape sequence as columns.
    table.trim_fmt().lines().map(|line| color_state(line, color)).collect::<Vec<_>>().join("\n")
}

/// Colors the state in the first column of a line. Continuation lines of a row have no state.
fn color_state(line: &str, color: bool) -> String {
    let states = [
        (CheckState::Ok, Style::Green),
        (CheckState::Warn, Style::Yellow),
        (CheckState::Fail, Style::Red),
        (CheckState::Unknown, Style::Dim),
    ];
    let first = line.trim_start();
    let indent = &line[..line.len() - first.len()];
    let state = states.iter().map(|(state, style)| (state.to_string(), style));
    match state.filter(|_| indent.len() < 2).find(|(word, _)| first.starts_with(word)) {
        Some((word, style)) => format!("{indent}{}{}", style.on(&word, color), &first[word.len()..]),
        None => line.to_owned(),
    }
}
