//! The embedded cluster's figures: whole runs of the command, each in a process of its own.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Figure, Unit};

/// How often a run is measured.
const RUNS: usize = 3;
/// How often a process is asked for its memory.
const LOOK: Duration = Duration::from_millis(5);

/// What one run took.
struct Run {
    seconds: f64,
    /// The most memory that it had at a time, in bytes; none where the system does not tell.
    peak: Option<u64>,
}

/// Runs every case by `program`, on one kubelet and on all that are modelled. Blocks as long as that takes.
pub fn on_embedded(program: &Path) -> Vec<Figure> {
    let mut peaks = Vec::new();
    let mut why = String::new();
    let rows = [
        ("every case, embedded, one kubelet", "v1.36", 2.0),
        ("every case, embedded, ten kubelets", "all", 15.0),
    ];
    let mut figures: Vec<Figure> = rows
        .into_iter()
        .map(|(figure, kubelet, at_most)| {
            let runs: io::Result<Vec<Run>> = (0..RUNS).map(|_| whole_run(program, kubelet)).collect();
            let runs = runs.unwrap_or_else(|error| {
                why = error.to_string();
                Vec::new()
            });
            peaks.extend(runs.iter().filter_map(|run| run.peak));
            let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
            Figure::median(figure, (Unit::Seconds, at_most), &seconds, &why)
        })
        .collect();
    let peak = peaks.iter().max().map(|peak| *peak as f64 / f64::from(1 << 20));
    let note = match peak {
        Some(_) => format!("the most of {} runs", peaks.len()),
        None if why.is_empty() => "this system has no /proc/PID/status".to_owned(),
        None => why,
    };
    let figure = "memory of a run on the embedded cluster".to_owned();
    figures.push(Figure { figure, unit: Unit::Mebibytes, at_most: 150.0, measured: peak, note });
    figures
}

fn whole_run(program: &Path, kubelet: &str) -> io::Result<Run> {
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
    let mut most = None;
    let status = loop {
        most = most.max(peak(&child));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(LOOK);
    };
    match status.success() {
        true => Ok(Run { seconds: began.elapsed().as_secs_f64(), peak: most }),
        false => Err(io::Error::other(format!("`evictlab run --kubelet {kubelet}` ended with {status}"))),
    }
}

/// The most memory that a process has had so far, in bytes (`VmHWM`, `proc_pid_status(5)`).
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_is_not_measured() {
        let own = std::env::current_exe().unwrap();
        let figures = on_embedded(&own);
        assert!(figures.iter().all(|figure| figure.measured.is_none()), "{figures:?}");
        assert!(figures[0].note.contains("`evictlab run --kubelet v1.36` ended with"), "{figures:?}");
    }
}
