//! `evictlab watch`

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use evictlab_rules::threshold::Signal;
use evictlab_runner::cluster::Reached;
use evictlab_runner::report::Manners;
use evictlab_runner::schedule::Interrupt;
use evictlab_runner::watch::{Asked, Show, Style, WatchError, look, watch};
use jiff::Timestamp;
use terminal_size::terminal_size;

use super::existing::{AccessArgs, unusable};
use crate::failure::{Failure, infrastructure};

/// Watch nodes of any cluster: who would be evicted next, and why
///
/// Of each node: what it has left against its thresholds, and its pods in the order in which its kubelet would evict them, each with the reason.
/// Then what happens: thresholds that are crossed, conditions, another pod that is the first to go, evictions with their message taken apart and
/// whether they were foreseen, pods that are gone. Changes nothing.
///
/// On a terminal a table is drawn again and again below what happened; elsewhere the table is printed once, then a line for each thing that
/// happens.
///
/// The thresholds are those of the kubelet's own configuration, the order follows the rules of its version. The figures are those of its
/// Summary: of pods they are up to 20 s old, as they are for the kubelet itself. Each kubelet is asked for both once in an interval.
///
/// Takes the rights to `list` and `watch` nodes, pods and events, and to `get` nodes/proxy, cluster-wide; with --once to `list` nodes and
/// pods, and to `get` nodes/proxy.
///
/// Exit status: 0 watched until it was interrupted, or looked at once; 2 no such cluster, node or selector; 4 the cluster does not answer, or
/// does not permit it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab watch
  evictlab watch worker-1 worker-2 --pods 20
  evictlab watch --node-selector pool=batch --signal nodefs.available
  evictlab watch --once --json | jq '.[] | .name, .reading.order[0]'
  evictlab watch --context staging --interval 10s > evictions.log")]
pub struct Args {
    /// The nodes [default: all]
    #[arg(value_name = "NODE", conflicts_with = "node_selector")]
    nodes: Vec<String>,
    /// The nodes with these labels, such as `pool=evictions`
    #[arg(long, value_name = "SELECTOR")]
    node_selector: Option<String>,
    /// The signal to watch: memory.available, allocatableMemory.available, nodefs.available, nodefs.inodesFree, imagefs.available,
    /// imagefs.inodesFree, containerfs.available, containerfs.inodesFree or pid.available
    #[arg(long, default_value_t = Signal::MemoryAvailable)]
    signal: Signal,
    /// How often each kubelet is asked
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// List the first so many pods of each node
    #[arg(long, value_name = "N", default_value_t = 5)]
    pods: usize,
    /// Look once, and end
    #[arg(long)]
    once: bool,
    /// Print a JSON array of nodes instead of a table, with all of their pods
    #[arg(long, requires = "once")]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

fn interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(200);
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < LEAST {
        Err("a kubelet is not asked more often than every 200ms".to_owned())
    } else {
        Ok(interval)
    }
}

/// Watches until it is interrupted, or looks once.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let reached = args.access.access().reach().await.map_err(unusable)?;
    let asked = Asked {
        nodes: args.nodes.clone(),
        selector: args.node_selector.clone(),
        signal: args.signal,
        interval: args.interval,
    };
    let done = match args.once {
        true => interrupt.stop.run_until_cancelled(once(args, &reached, &asked)).await,
        false => Some(watched(args, &reached, &asked, &interrupt).await),
    };
    match done {
        None => Err(Failure::interrupted()),
        Some(Ok(())) => Ok(ExitCode::SUCCESS),
        // A reader that has seen enough (`| head`) is no failure.
        Some(Err(WatchError::Output(error))) if error.kind() == ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Some(Err(WatchError::Output(error))) => Err(infrastructure(WatchError::Output(error))),
        Some(Err(WatchError::Cluster(error))) => Err(unusable(error)),
    }
}

async fn once(args: &Args, reached: &Reached, asked: &Asked) -> Result<(), WatchError> {
    let views = look(reached, asked).await?;
    if args.json {
        let text = serde_json::to_string_pretty(&views).map_err(io::Error::from)?;
        return Ok(writeln!(io::stdout().lock(), "{text}")?);
    }
    let mut style = style(args, &reached.name);
    style.manners.live = false;
    Ok(Show::new(io::stdout(), terminal_size, style).once(views, Timestamp::now())?)
}

async fn watched(
    args: &Args,
    reached: &Reached,
    asked: &Asked,
    interrupt: &Interrupt,
) -> Result<(), WatchError> {
    let every = humantime::format_duration(args.interval);
    let style = style(args, &format!("{}, every {every} until Ctrl-C", reached.name));
    let mut show = Show::new(io::stdout(), terminal_size, style);
    watch(reached, asked, &mut show, &interrupt.stop).await
}

fn style(args: &Args, title: &str) -> Style {
    Style { manners: Manners::of_stdout(), pods: args.pods, title: title.to_owned() }
}
