//! `evictlab watch`

use std::io::{self, BufWriter, ErrorKind, Write};
use std::net::SocketAddr;
use std::process::{ExitCode, exit};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use evictlab_cluster::ClusterClient;
use evictlab_fault::parse_duration;
use evictlab_report::{TerminalCaps, exit_code};
use evictlab_rules::threshold::Signal;
use evictlab_runner::Interrupt;
use evictlab_tools::watch::{
    Key, Keyboard, MetricsRequests, ViewOptions, WatchError, WatchInputs, WatchOptions, WatchView, inspect,
    serve_metrics, watch,
};
use jiff::Timestamp;
use terminal_size::terminal_size;
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use crate::args::existing::{AccessArgs, existing_failure};
use crate::args::output::ColorArgs;
use crate::args::values::{socket_address, whole_number};
use crate::failure::Failure;
use crate::messages::print_stderr;
use crate::output::VisibleWriter;

/// Time after an interrupt until the process exits, whether its output was read or not.
const EXIT_DELAY: Duration = Duration::from_secs(5);

/// Watch the nodes of any cluster and predict the next evictions
///
/// Shows for each node the available amount and the thresholds, and its pods in the order in which
/// its kubelet would evict them, each with the reason. Reports crossed thresholds, node conditions,
/// a new first eviction candidate, evictions with their parsed message and whether the ranking
/// predicted them, and pods that end. Changes nothing.
///
/// On a terminal, the table is updated below the changes, and keys select a node (arrows), show all
/// of its pods with the reason for the rank of each (Enter, Esc), change the signal (s, S) and quit
/// (q); otherwise the table is printed once, then one line for each change.
///
/// The thresholds come from the configuration of each kubelet, and the ranking follows the rules of
/// its version. The usage comes from the kubelet's Summary: values of pods are up to 20 s old, as
/// they are for the kubelet. Each kubelet gets one request for configuration and Summary per
/// interval.
///
/// Required RBAC permissions, cluster-wide: `list` and `watch` on nodes, pods and events, and `get`
/// on nodes/proxy; with --once `list` on nodes and pods, and `get` on nodes/proxy.
///
/// Exit status: 0 after Ctrl-C, or printed once; 2 the cluster, node or selector does not exist; 4
/// the cluster does not answer, or denies access; 130 `--once` was interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab watch
  evictlab watch worker-1 worker-2 --pods 20
  evictlab watch --node-selector pool=batch --signal nodefs.available
  evictlab watch --once --json | jq '.[] | .name, .reading.order[0]'
  evictlab watch --context staging --interval 10s > evictions.log
  evictlab watch --interval 10s --metrics 127.0.0.1:9469 > /dev/null")]
pub(crate) struct Args {
    /// Nodes to watch [default: all]
    #[arg(value_name = "NODE", conflicts_with = "node_selector")]
    nodes: Vec<String>,
    /// Watch the nodes with these labels, such as `pool=evictions`
    #[arg(long, value_name = "SELECTOR")]
    node_selector: Option<String>,
    /// Signal to watch
    #[arg(long, default_value_t = Signal::MemoryAvailable, value_parser = signal())]
    signal: Signal,
    /// Time between two requests to a kubelet, at least 200ms
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// Show the first N pods of each node
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole_number::<usize>(..))]
    pods: usize,
    /// Serve OpenMetrics at http://ADDRESS/metrics, such as 127.0.0.1:9469: distances to
    /// thresholds, evictions by cause, and correct predictions
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
    /// Print the current state and exit
    #[arg(long)]
    once: bool,
    /// With --once: print a JSON array of nodes with all of their pods instead of a table
    // --once conflicts with --metrics, and clap ignores `requires` if the required argument
    // conflicts with a given one.
    #[arg(long, requires = "once", conflicts_with = "metrics")]
    json: bool,
    #[command(flatten)]
    color: ColorArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// Accepts the names of the signals.
fn signal() -> impl TypedValueParser<Value = Signal> {
    let names = PossibleValuesParser::new(Signal::ALL.map(Signal::as_str));
    names.try_map(|name| name.parse::<Signal>())
}

fn interval(text: &str) -> Result<Duration, String> {
    const MIN_INTERVAL: Duration = Duration::from_millis(200);
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    if interval < MIN_INTERVAL { Err("the interval must be at least 200ms".to_owned()) } else { Ok(interval) }
}

/// Watches until an interrupt, or prints the state once.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let metrics_requests = match args.metrics {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let client = args.access.access().connect().await.map_err(existing_failure)?;
    let options = WatchOptions {
        nodes: args.nodes.clone(),
        selector: args.node_selector.clone(),
        signal: args.signal,
        interval: args.interval,
    };
    let (keyboard, keys) = keyboard(args).map_err(Failure::infrastructure)?.unzip();
    let status = if args.once { exit_code::INTERRUPTED } else { exit_code::SUCCESS };
    let restore = keyboard.as_ref().map(Keyboard::restorer);
    tokio::spawn(exit_after(interrupt.stop.clone().cancelled_owned(), status, restore));
    let inputs = WatchInputs { metrics_requests, keys };
    let result = if args.once {
        interrupt.stop.run_until_cancelled(print_once(args, &client, &options)).await
    } else {
        Some(watch_until_interrupted(args, &client, &options, inputs, &interrupt).await)
    };
    match result {
        None => Err(Failure::interrupted()),
        Some(Ok(())) => Ok(ExitCode::SUCCESS),
        // A closed pipe (`| head`) is not a failure.
        Some(Err(WatchError::Output(error))) if error.kind() == ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Some(Err(error @ WatchError::Output(_))) => Err(Failure::infrastructure(error)),
        Some(Err(WatchError::Cluster(error))) => Err(existing_failure(error)),
    }
}

/// Exits some time after an interrupt, and restores the terminal before: a reader that does not
/// read, such as a pager, blocks the output. A watch has nothing to clean up.
async fn exit_after(interrupt: impl Future<Output = ()>, status: u8, restore: Option<impl Fn()>) {
    interrupt.await;
    sleep(EXIT_DELAY).await;
    if let Some(restore) = restore {
        restore();
    }
    exit(status.into());
}

async fn print_once(args: &Args, client: &ClusterClient, options: &WatchOptions) -> Result<(), WatchError> {
    let views = inspect(client, options).await?;
    if args.json {
        let mut out = VisibleWriter(BufWriter::new(io::stdout().lock()));
        serde_json::to_writer_pretty(&mut out, &views).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let mut view = view_options(args, &client.name);
    view.terminal.live = false;
    Ok(WatchView::new(io::stdout(), terminal_size, view).print_once(views, Timestamp::now())?)
}

/// Serves metrics at an address, and prints it: port 0 is a free one.
async fn listen(address: SocketAddr) -> Result<MetricsRequests, Failure> {
    let failed = |error| Failure::bad_input(format!("failed to listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(Failure::infrastructure)?;
    print_stderr(format_args!("metrics: http://{address}/metrics"));
    Ok(serve_metrics(listener))
}

async fn watch_until_interrupted(
    args: &Args,
    client: &ClusterClient,
    options: &WatchOptions,
    inputs: WatchInputs,
    interrupt: &Interrupt,
) -> Result<(), WatchError> {
    let every = humantime::format_duration(args.interval);
    let view = view_options(args, &format!("{}, every {every} until Ctrl-C", client.name));
    let mut view = WatchView::new(io::stdout(), terminal_size, view);
    watch(client, options, &mut view, inputs, &interrupt.stop).await
}

/// Opens the keyboard of a live view.
fn keyboard(args: &Args) -> io::Result<Option<(Keyboard, UnboundedReceiver<Key>)>> {
    let is_live = TerminalCaps::of_stdout(args.color.choice()).live && !args.once;
    if is_live { Keyboard::open() } else { Ok(None) }
}

fn view_options(args: &Args, title: &str) -> ViewOptions {
    ViewOptions {
        terminal: TerminalCaps::of_stdout(args.color.choice()),
        pods: args.pods,
        title: title.to_owned(),
    }
}
