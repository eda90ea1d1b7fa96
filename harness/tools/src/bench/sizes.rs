//! Measures time and memory on clusters of growing size.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use evictlab_report::{RecordedRun, RunEvent, RunEventKind};
use evictlab_rules::quantity::MIB;
use serde::Deserialize;
use serde_json::{Value, json};

use super::figure::{Figure, GrowthPoint, Unit};
use super::generated_cluster::GeneratedCluster;
use super::process::{Background, MeasuredProgram, ProcessUsage, peak};

/// Numbers of nodes.
const SIZES: [usize; 4] = [10, 100, 1000, 5000];
/// Maximum number of nodes of an embedded cluster.
const MAX_EMBEDDED: usize = 1000;
/// Number of pods of a generated node.
const PODS_PER_NODE: usize = 30;
/// Case that puts no node under pressure.
const CASE: &str = "message/ephemeral-resources-are-refused";
/// Interval of the continuous watch.
const WATCH_INTERVAL: Duration = Duration::from_secs(30);
/// Number of intervals that the continuous watch is observed for.
const WATCH_INTERVALS: u32 = 2;
/// Maximum time until the continuous watch has queried every node once.
const WATCH_START_TIMEOUT: Duration = Duration::from_secs(120);

/// A measured command: the names and the targets of the figures, for the largest size.
struct Row {
    what: &'static str,
    max_seconds: f64,
    max_bytes: f64,
}

/// A node of `evictlab watch --json`: the part of [`crate::watch::NodeView`] that shows whether it
/// is ready.
#[derive(Deserialize)]
struct WatchedNode {
    conditions: BTreeMap<String, String>,
    problem: Option<String>,
}

impl WatchedNode {
    fn is_ready(&self) -> bool {
        !self.conditions.contains_key("NotReady") && self.problem.is_none()
    }
}

/// Time and memory at one size.
struct Point {
    size: usize,
    usage: io::Result<ProcessUsage>,
}

/// Measures commands of `program` on clusters of 10 to 5,000 nodes, embedded ones to 1,000. Blocks
/// until the commands end or are interrupted; call it from a task of a runtime with several
/// threads. `progress` receives one line for each command and size.
pub async fn measure_sizes(program: MeasuredProgram<'_>, progress: &dyn Fn(&str)) -> Vec<Figure> {
    let mut figures = Vec::from(measure_embedded_nodes(program, progress));
    figures.extend(measure_existing_nodes(program, progress));
    figures.extend(measure_watch(program, progress).await);
    figures.extend(measure_explain(program, progress));
    figures
}

/// Runs a case on an embedded cluster.
fn measure_embedded_nodes(program: MeasuredProgram<'_>, progress: &dyn Fn(&str)) -> [Figure; 2] {
    let points = SIZES.into_iter().filter(|size| *size <= MAX_EMBEDDED).map(|size| {
        progress(&format!("running a case on an embedded cluster of {size} nodes"));
        let usage = measure_run(program, &["--backend", "embedded", "--nodes", &size.to_string()]);
        Point { size, usage: usage.map(|(usage, _)| usage) }
    });
    let row = Row { what: "a run on an embedded cluster", max_seconds: 8.0, max_bytes: 500e6 };
    row.figures("nodes", points.collect())
}

/// Prepares all nodes of a cluster of another process.
fn measure_existing_nodes(program: MeasuredProgram<'_>, progress: &dyn Fn(&str)) -> [Figure; 2] {
    let points = SIZES.into_iter().filter(|size| *size <= MAX_EMBEDDED).map(|size| {
        progress(&format!("preparing {size} nodes of an existing cluster"));
        Point { size, usage: measure_readiness(program, size) }
    });
    let row = Row { what: "look and readiness of an existing cluster", max_seconds: 20.0, max_bytes: 300e6 };
    row.figures("nodes", points.collect())
}

fn measure_readiness(program: MeasuredProgram<'_>, nodes: usize) -> io::Result<ProcessUsage> {
    program.wait(Duration::ZERO)?;
    let arguments = ["cluster", "create", "--backend", "embedded", "--kubelet", "v1.33"];
    let mut server = program.command();
    server.args(arguments).args(["--nodes", &nodes.to_string()]);
    let server = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut server = Background(server);
    let output = server.0.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let mut kubeconfigs = output
        .map_while(Result::ok)
        .filter_map(|line| Some(line.strip_prefix("export KUBECONFIG=")?.to_owned()));
    let kubeconfig = kubeconfigs.next();
    let kubeconfig = kubeconfig.ok_or_else(|| io::Error::other("the embedded cluster was not served"))?;
    let measured = wait_until_ready(program, &kubeconfig, nodes).and_then(|()| {
        let selector = ["--node-selector", "kubernetes.io/os=linux"];
        measure_run(
            program,
            &[&["--backend", "existing", "--kubeconfig", &kubeconfig], &selector[..]].concat(),
        )
    });
    // The killed server does not delete it.
    let _ignored = fs::remove_file(&kubeconfig);
    let (usage, events) = measured?;
    let ready = events.iter().find_map(|event| match &event.kind {
        RunEventKind::ClusterReady { seconds, nodes, .. } => Some((*seconds, nodes.len())),
        _ => None,
    });
    match ready {
        None => Err(io::Error::other("the cluster did not become ready")),
        Some((seconds, prepared)) if prepared == nodes => Ok(ProcessUsage { seconds, ..usage }),
        Some((_, prepared)) => Err(io::Error::other(format!("{prepared} of {nodes} nodes became ready"))),
    }
}

/// Waits until the served nodes have joined and are ready.
fn wait_until_ready(program: MeasuredProgram<'_>, kubeconfig: &str, nodes: usize) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let output = program
            .command()
            .args(["watch", "--once", "--json", "--kubeconfig", kubeconfig])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()?;
        // Without a list, the server does not answer yet.
        let listed: Vec<WatchedNode> = match output.stdout.trim_ascii() {
            [] => Vec::new(),
            list => serde_json::from_slice(list)?,
        };
        if listed.iter().filter(|node| node.is_ready()).count() == nodes {
            return Ok(());
        }
        if began.elapsed() > WATCH_START_TIMEOUT {
            return Err(io::Error::other("the nodes of the embedded cluster did not become ready"));
        }
        program.wait(Duration::from_millis(200))?;
    }
}

/// Runs the case; returns the usage and the events of the run.
fn measure_run(
    program: MeasuredProgram<'_>,
    arguments: &[&str],
) -> io::Result<(ProcessUsage, Vec<RunEvent>)> {
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let mut command = program.command();
    command.args(["run", CASE]).args(arguments);
    if !arguments.contains(&"existing") {
        command.args(["--kubelet", "v1.33"]);
    }
    command.arg("--output-dir").arg(&run).current_dir(folder.path());
    let usage = program.measure(command.env_remove("EVICTLAB_CASES").env_remove("GITHUB_STEP_SUMMARY"))?;
    let events = RecordedRun::events(&run).map_err(io::Error::other)?;
    Ok((usage, events))
}

/// Watches generated nodes, once and continuously.
async fn measure_watch(program: MeasuredProgram<'_>, progress: &dyn Fn(&str)) -> Vec<Figure> {
    let mut points = Vec::new();
    for size in SIZES {
        progress(&format!("watching {size} nodes with {PODS_PER_NODE} pods each once"));
        let usage = match GeneratedCluster::serve(size, PODS_PER_NODE).await {
            Ok(cluster) => program.measure(watch(program, &cluster).arg("--once")),
            Err(error) => Err(error),
        };
        points.push(Point { size, usage });
    }
    let row = Row { what: "`evictlab watch --once` with 30 pods a node", max_seconds: 6.0, max_bytes: 500e6 };
    let mut figures = Vec::from(row.figures("nodes", points));
    let largest = SIZES[SIZES.len() - 1];
    let interval = humantime::format_duration(WATCH_INTERVAL);
    progress(&format!("watching {largest} nodes at --interval {interval}"));
    let measured = match GeneratedCluster::serve(largest, PODS_PER_NODE).await {
        Ok(cluster) => watch_continuously(program, &cluster, largest),
        Err(error) => Err(error),
    };
    let (measured, note) = match measured {
        Ok((seconds, note)) => (Some(seconds), note),
        Err(error) => (None, error.to_string()),
    };
    figures.push(Figure {
        figure: format!("`evictlab watch --interval {interval}`, {largest} nodes: time between two queries"),
        unit: Unit::Seconds,
        // The time of the query itself is added to the interval.
        at_most: WATCH_INTERVAL.as_secs_f64() * 1.1,
        measured,
        note,
        growth: Vec::new(),
    });
    figures
}

fn watch(program: MeasuredProgram<'_>, cluster: &GeneratedCluster) -> Command {
    let mut command = program.command();
    command.arg("watch").arg("--kubeconfig").arg(cluster.kubeconfig());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the mean time between two queries of a node in seconds, and a note on memory.
fn watch_continuously(
    program: MeasuredProgram<'_>,
    cluster: &GeneratedCluster,
    nodes: usize,
) -> io::Result<(f64, String)> {
    let interval = humantime::format_duration(WATCH_INTERVAL).to_string();
    let process = Background(watch(program, cluster).args(["--interval", &interval]).spawn()?);
    let began = Instant::now();
    // The initial queries, and the first ones of the pollers.
    while cluster.queries() < 2 * nodes {
        if began.elapsed() > WATCH_START_TIMEOUT {
            return Err(io::Error::other("the watch did not query every node twice"));
        }
        program.wait(Duration::from_millis(100))?;
    }
    let (began, before) = (Instant::now(), cluster.queries());
    program.wait(WATCH_INTERVAL * WATCH_INTERVALS)?;
    let queries = cluster.queries() - before;
    let seconds = began.elapsed().as_secs_f64() * nodes as f64 / queries as f64;
    let memory = peak(&process.0).map_or(0.0, |bytes| bytes as f64 / MIB as f64);
    Ok((seconds, format!("mean of {WATCH_INTERVALS} intervals; {memory:.0} MiB")))
}

/// Explains the events of clusters: 30 for each node, one of them an eviction.
fn measure_explain(program: MeasuredProgram<'_>, progress: &dyn Fn(&str)) -> [Figure; 2] {
    let points = SIZES.into_iter().map(|nodes| {
        let size = nodes * PODS_PER_NODE;
        progress(&format!("explaining {size} events"));
        let usage = tempfile::tempdir().and_then(|folder| {
            program.wait(Duration::ZERO)?;
            let path = write_events(folder.path(), nodes)?;
            program.measure(program.command().arg("explain").arg(path))
        });
        Point { size, usage }
    });
    let row = Row { what: "`evictlab explain`", max_seconds: 3.0, max_bytes: 300e6 };
    row.figures("events", points.collect())
}

fn write_events(folder: &Path, nodes: usize) -> io::Result<PathBuf> {
    let path = folder.join("events.json");
    let mut file = BufWriter::new(File::create(&path)?);
    write!(file, r#"{{"kind":"List","apiVersion":"v1","items":["#)?;
    for nth in 0..nodes * PODS_PER_NODE {
        let separator = if nth == 0 { "" } else { "," };
        write!(file, "{separator}{}", event(nth))?;
    }
    write!(file, "]}}")?;
    file.flush()?;
    Ok(path)
}

fn event(nth: usize) -> Value {
    let (reason, message) = match nth % PODS_PER_NODE {
        0 => (
            "Evicted",
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. Container web was using 300Mi, request is 64Mi, has larger consumption of memory. ",
        ),
        _ => ("Pulled", "Container image \"registry.example/team/web:1.2.3\" already present on machine"),
    };
    let pod = format!("web-{nth}");
    json!({
        "kind": "Event", "apiVersion": "v1",
        "metadata": {"name": format!("{pod}.1"), "namespace": "team", "uid": format!("event-{nth}")},
        "involvedObject": {"kind": "Pod", "namespace": "team", "name": pod, "uid": format!("uid-{nth}"), "apiVersion": "v1"},
        "reason": reason, "message": message, "type": "Normal",
        "source": {"component": "kubelet", "host": format!("node-{}", nth / PODS_PER_NODE)},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
    })
}

impl Row {
    /// Returns the figures of time and memory: those of the largest size, with the growth up to it.
    fn figures(&self, unit: &str, points: Vec<Point>) -> [Figure; 2] {
        let last = points.last();
        let size = last.map_or(0, |point| point.size);
        let usage = last.and_then(|point| point.usage.as_ref().ok());
        let failure = points.iter().find_map(|point| point.usage.as_ref().err());
        let note = match failure {
            Some(error) => error.to_string(),
            None if usage.is_some_and(|usage| usage.peak.is_none()) => {
                "no /proc/PID/status on this system".to_owned()
            }
            None => "one run".to_owned(),
        };
        let figure = |what: &str| format!("{}, {size} {unit}: {what}", self.what);
        let mebibytes = |bytes: u64| bytes as f64 / MIB as f64;
        let growth = points.iter().filter_map(|point| {
            let usage = point.usage.as_ref().ok()?;
            Some(GrowthPoint {
                size: point.size,
                seconds: usage.seconds,
                mebibytes: usage.peak.map(mebibytes),
            })
        });
        let time = Figure {
            figure: figure("time"),
            unit: Unit::Seconds,
            at_most: self.max_seconds,
            measured: usage.map(|usage| usage.seconds),
            note: note.clone(),
            growth: growth.collect(),
        };
        let memory = Figure {
            figure: figure("memory"),
            unit: Unit::Mebibytes,
            at_most: self.max_bytes / MIB as f64,
            measured: usage.and_then(|usage| usage.peak).map(mebibytes),
            note,
            growth: Vec::new(),
        };
        [time, memory]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_explain::{Input, explain};

    #[test]
    fn a_size_that_fails_has_no_figure_but_its_reason() {
        let row = Row { what: "x", max_seconds: 1.0, max_bytes: 2e6 };
        let good = |size| Point { size, usage: Ok(ProcessUsage { seconds: 0.5, peak: Some(MIB) }) };
        let [time, memory] = row.figures("nodes", vec![good(10), good(100)]);
        assert_eq!((time.figure.as_str(), time.reached()), ("x, 100 nodes: time", Some(true)));
        assert_eq!((memory.measured, memory.reached()), (Some(1.0), Some(true)));
        assert_eq!(time.growth.iter().map(|point| point.size).collect::<Vec<_>>(), [10, 100]);
        let bad = Point { size: 1000, usage: Err(io::Error::other("it failed")) };
        let [time, memory] = row.figures("nodes", vec![good(10), bad]);
        assert_eq!((time.reached(), memory.reached(), time.note.as_str()), (None, None, "it failed"));
        assert_eq!(time.growth.len(), 1);
    }

    #[test]
    fn one_event_of_each_node_is_an_eviction() {
        let folder = tempfile::tempdir().unwrap();
        let text = fs::read_to_string(write_events(folder.path(), 3).unwrap()).unwrap();
        assert_eq!(text.matches(r#""kind":"Event""#).count(), 90);
        assert_eq!(explain(&Input::read(&text).unwrap(), None).unwrap().len(), 3);
    }
}
