//! Measures whole runs of the command, each in its own process.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use evictlab_rules::quantity::{KIB, MIB};

use super::figure::{Figure, Unit};

/// Number of runs for each figure.
const RUNS_PER_FIGURE: usize = 3;
/// Time between two samples of the memory of a process.
const MEMORY_SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Duration and memory of a run.
struct Run {
    seconds: f64,
    /// Peak memory in bytes; `None` on systems without `/proc`.
    peak: Option<u64>,
}

/// Runs every case with `program`, on one kubelet and on all modelled kubelets. Blocks until the
/// runs end.
pub fn measure_embedded(program: &Path) -> Vec<Figure> {
    let mut peaks = Vec::new();
    let mut failure = String::new();
    let rows = [
        ("every case, embedded, one kubelet", "v1.36", 2.0),
        ("every case, embedded, ten kubelets", "all", 15.0),
    ];
    let mut figures: Vec<Figure> = rows
        .into_iter()
        .map(|(figure, kubelet, at_most)| {
            let runs: io::Result<Vec<Run>> =
                (0..RUNS_PER_FIGURE).map(|_| measure_run(program, kubelet)).collect();
            let runs = runs.unwrap_or_else(|error| {
                failure = error.to_string();
                Vec::new()
            });
            peaks.extend(runs.iter().filter_map(|run| run.peak));
            let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
            Figure::median(figure, (Unit::Seconds, at_most), &seconds, &failure)
        })
        .collect();
    let peak = peaks.iter().max().map(|peak| *peak as f64 / MIB as f64);
    let note = match peak {
        Some(_) => format!("maximum of {} runs", peaks.len()),
        None if failure.is_empty() => "no /proc/PID/status on this system".to_owned(),
        None => failure,
    };
    let figure = "memory of a run on the embedded cluster".to_owned();
    figures.push(Figure { figure, unit: Unit::Mebibytes, at_most: 150.0, measured: peak, note });
    figures
}

fn measure_run(program: &Path, kubelet: &str) -> io::Result<Run> {
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(["run", "--backend", "embedded", "--kubelet", kubelet, "--output-dir"])
        .arg(folder.path().join("run"))
        .current_dir(folder.path())
        .env_remove("EVICTLAB_CASES")
        .env_remove("GITHUB_STEP_SUMMARY")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut maximum = None;
    let status = loop {
        maximum = maximum.max(peak(&child));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(MEMORY_SAMPLE_INTERVAL);
    };
    match status.success() {
        true => Ok(Run { seconds: began.elapsed().as_secs_f64(), peak: maximum }),
        false => Err(io::Error::other(format!("`evictlab run --kubelet {kubelet}` exited with {status}"))),
    }
}

/// Returns the peak memory of a process in bytes (`VmHWM`, `proc_pid_status(5)`).
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_runs_are_not_measured() {
        let own = std::env::current_exe().unwrap();
        let figures = measure_embedded(&own);
        assert!(figures.iter().all(|figure| figure.measured.is_none()), "{figures:?}");
        assert!(figures[0].note.contains("`evictlab run --kubelet v1.36` exited with"), "{figures:?}");
    }
}
