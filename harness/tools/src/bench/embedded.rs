//! Measures whole runs of the command, each in its own process.

use std::io;

use evictlab_rules::quantity::MIB;

use super::figure::{Figure, Target, Unit};
use super::process::{MeasuredProgram, ProcessUsage};

/// Number of runs for each figure.
const RUNS_PER_FIGURE: usize = 3;

/// Runs every case with `program`, on one kubelet and on all modelled kubelets. Blocks until the
/// runs end, or are interrupted.
pub fn measure_embedded(program: MeasuredProgram<'_>) -> Vec<Figure> {
    let mut peaks = Vec::new();
    let mut failure = String::new();
    let rows = [
        ("every case, embedded, one kubelet", "v1.36", 2.0),
        ("every case, embedded, all kubelets", "all", 15.0),
    ];
    let mut figures: Vec<Figure> = rows
        .into_iter()
        .map(|(figure, kubelet, at_most)| {
            let runs: io::Result<Vec<ProcessUsage>> =
                (0..RUNS_PER_FIGURE).map(|_| measure_run(program, kubelet)).collect();
            let runs = runs.unwrap_or_else(|error| {
                failure = error.to_string();
                Vec::new()
            });
            peaks.extend(runs.iter().filter_map(|run| run.peak));
            let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
            Figure::from_values(figure, Target { unit: Unit::Seconds, at_most }, &seconds, &failure)
        })
        .collect();
    let peak = peaks.iter().max().map(|peak| *peak as f64 / MIB as f64);
    let note = match peak {
        Some(_) => format!("maximum of {} runs", peaks.len()),
        None if failure.is_empty() => "no /proc/PID/status on this system".to_owned(),
        None => failure,
    };
    let figure = "memory of a run on the embedded cluster".to_owned();
    figures.push(Figure {
        figure,
        unit: Unit::Mebibytes,
        at_most: 150.0,
        measured: peak,
        note,
        growth: Vec::new(),
    });
    figures
}

fn measure_run(program: MeasuredProgram<'_>, kubelet: &str) -> io::Result<ProcessUsage> {
    let folder = tempfile::tempdir()?;
    let mut command = program.command();
    command.args(["run", "--backend", "embedded", "--kubelet", kubelet, "--output-dir"]);
    command.arg(folder.path().join("run")).current_dir(folder.path());
    program.measure(command.env_remove("EVICTLAB_CASES").env_remove("GITHUB_STEP_SUMMARY"))
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn failed_runs_are_not_measured() {
        let own = std::env::current_exe().unwrap();
        let stop = CancellationToken::new();
        let figures = measure_embedded(MeasuredProgram { program: &own, stop: &stop });
        assert!(figures.iter().all(|figure| figure.measured.is_none()), "{figures:?}");
        assert!(figures[0].note.contains("`evictlab run --backend embedded --kubelet v1.36 "), "{figures:?}");
    }
}
