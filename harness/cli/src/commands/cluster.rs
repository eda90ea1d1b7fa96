//! `evictlab cluster`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use comfy_table::{Table, presets};
use evictlab_cluster::{
    Cluster, ClusterError, ClusterProgress, ClusterRecord, ClusterState, Docker, EmbeddedOptions,
    KnownCluster, KubeletGroup, ListedCluster, NewCluster, Owner, ServedCluster, StateDir, skew_policy,
};
use evictlab_runner::{Interrupt, new_run_id};
use jiff::Timestamp;

use super::cluster_lookup::{Found, find_cluster, served};
use super::cluster_start_stop::{start, stop};
use super::serve_embedded::{detach, serve, this_command};
use crate::args::backend::{ManagedBackend, reject_foreign_options, stated};
use crate::args::candidates;
use crate::args::embedded::EmbeddedArgs;
use crate::args::kind_cluster::{NewClusterArgs, NewClusterSource};
use crate::args::kubelets::KubeletArgs;
use crate::args::target::MAX_NODES;
use crate::args::thresholds::ThresholdArgs;
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::messages::{print_stderr, print_warning};
use crate::output::{print, print_json, print_table, stdout_width};
use evictlab_report::BackendName;
use evictlab_report::text::count_noun;

/// Create, list, stop, start and delete clusters that outlive a run
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a kind cluster with a worker for each kubelet, or serve an embedded cluster
    ///
    /// `evictlab run --backend kind --cluster NAME` runs cases on the kind cluster. An embedded
    /// cluster is served until this command is interrupted, or with `--detach` in the background,
    /// until `evictlab cluster delete NAME`.
    ///
    /// Exit status: 0 the cluster is ready; 2 invalid input; 4 the cluster could not be created and
    /// was removed; 130 interrupted.
    Create(Box<CreateArgs>),
    /// List the clusters created by evictlab
    #[command(after_help = "Examples:
  evictlab cluster list --json")]
    List {
        /// Print a JSON array instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Stop a cluster, which then uses neither CPU nor memory
    ///
    /// A kind cluster keeps its objects, and is not stopped while a run uses it. An embedded
    /// cluster keeps its name and options; its objects are lost.
    #[command(after_help = "Examples:
  evictlab cluster stop lab")]
    Stop {
        /// Name of the cluster
        #[arg(add = ArgValueCandidates::new(candidates::clusters))]
        name: String,
    },
    /// Start a stopped cluster, with its kubeconfig at the same path
    ///
    /// Exit status: 0 the cluster is ready; 2 the cluster does not exist; 4 it did not become
    /// ready; 130 interrupted.
    #[command(after_help = "Examples:
  evictlab cluster start lab")]
    Start {
        /// Name of the cluster
        #[arg(add = ArgValueCandidates::new(candidates::clusters))]
        name: String,
    },
    /// Delete a cluster created by evictlab
    #[command(after_help = "Examples:
  evictlab cluster delete lab")]
    Delete {
        /// Name of the cluster
        #[arg(add = ArgValueCandidates::new(candidates::clusters))]
        name: String,
        /// Delete the cluster even if a run uses it, or its nodes have no record of a run
        #[arg(long)]
        force: bool,
    },
    /// Print the path of a cluster's kubeconfig
    #[command(after_help = "Examples:
  kubectl --kubeconfig \"$(evictlab cluster kubeconfig lab)\" get nodes")]
    Kubeconfig {
        /// Name of the cluster
        #[arg(add = ArgValueCandidates::new(candidates::clusters))]
        name: String,
    },
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab cluster create --backend kind --name lab --kubelet v1.31 --kubelet ./kubelet --nodes 3
  evictlab run --backend kind --cluster lab
  evictlab cluster create --kubelet v1.36 --eviction-hard 'memory.available<2Gi'
  evictlab cluster create --name sim --detach && export KUBECONFIG=$(evictlab cluster kubeconfig sim)")]
struct CreateArgs {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Backend that provides the nodes; an embedded cluster exists until the command ends
    #[arg(long, short, value_enum, default_value_t = ManagedBackend::Embedded)]
    backend: ManagedBackend,
    /// Number of nodes for each kubelet, on kind at most 16
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u16>(1..=MAX_NODES))]
    nodes: u16,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    /// Serve an embedded cluster in the background, until `evictlab cluster delete NAME`
    #[arg(long, requires = "name")]
    detach: bool,
    #[command(flatten)]
    thresholds: ThresholdArgs,
    #[command(flatten)]
    cluster: NewClusterArgs,
}

/// Executes the subcommand.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Command::Create(args) = &args.command
        && args.backend == ManagedBackend::Embedded
    {
        reject_foreign_options(
            BackendName::Embedded,
            BackendName::Kind,
            &args.cluster.stated_kind_options(),
        )?;
        let kubelets = args.kubelets.modelled(&args.kubelets.image_catalog()?)?;
        let kubelet_config = args.thresholds.kubelet_config(&kubelets)?;
        let options = args.embedded.options(kubelets, args.nodes.into());
        return match args.cluster.name() {
            Some(name) if args.detach => detach(&name, &this_command()?).await,
            name => serve(&EmbeddedOptions { kubelet_config, ..options }, name.as_deref()).await,
        };
    }
    let state = StateDir::open().map_err(Failure::infrastructure)?;
    match &args.command {
        Command::Create(args) => create(args, &state).await,
        Command::List { json } => list(*json, &state).await,
        Command::Stop { name } => stop(name, &state).await,
        Command::Start { name } => start(name, &state).await,
        Command::Delete { name, force } => delete(name, *force, &state).await,
        Command::Kubeconfig { name } => {
            let path = state.kubeconfig(name);
            if !path.is_file() {
                return Err(Failure::bad_input(match served(&state, name) {
                    Some(_) => ClusterError::Stopped(name.clone()),
                    None => ClusterError::Unknown(name.clone()),
                }));
            }
            print(path.display())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn delete(name: &str, force: bool, state: &StateDir) -> Result<ExitCode, Failure> {
    let (docker, found) = match find_cluster(state, name).await? {
        Found::Embedded(served) => {
            served.delete(state).await.map_err(Failure::infrastructure)?;
            return print_deleted(name);
        }
        Found::Kind(docker, found) => (docker, found),
    };
    if found.state == ClusterState::Live && !force {
        let owner = &found.record.owner;
        let (pid, host) = (owner.pid, &owner.host);
        return Err(Failure::bad_input(format!(
            "failed to delete cluster {name}: process {pid} on {host} uses it\nhelp: wait for the end of its run, or use --force"
        )));
    }
    if !found.is_own && !force {
        return Err(Failure::bad_input(format!(
            "failed to delete cluster {name}: its nodes have no record of a run, so another program may have created it\nhelp: delete it with `kind delete cluster`, or use --force"
        )));
    }
    evictlab_cluster::delete(&docker, state, name).await.map_err(Failure::infrastructure)?;
    print_deleted(name)
}

fn print_deleted(name: &str) -> Result<ExitCode, Failure> {
    print(format!("cluster {name} is deleted"))?;
    Ok(ExitCode::SUCCESS)
}

async fn create(args: &CreateArgs, state: &StateDir) -> Result<ExitCode, Failure> {
    args.embedded.reject_on(BackendName::Kind)?;
    reject_foreign_options(BackendName::Kind, BackendName::Embedded, &args.thresholds.stated_options())?;
    let detach = stated([("--detach", args.detach)]);
    reject_foreign_options(BackendName::Kind, BackendName::Embedded, &detach)?;
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let prepared = async {
        let run = new_run_id();
        let clusters = args.cluster.clusters(&run, args.nodes)?;
        let docker = Docker::connect().await.map_err(Failure::infrastructure)?;
        evictlab_cluster::kind_version().await.map_err(Failure::infrastructure)?;
        let catalog = args.kubelets.image_catalog()?;
        let kubelets = args.kubelets.resolve(&docker, &catalog).await?;
        let group = single_group(evictlab_cluster::group_by_skew(kubelets).map_err(Failure::bad_input)?)?;
        evictlab_cluster::ensure_names_unused(&docker, &clusters.clone().into(), 1)
            .await
            .map_err(Failure::bad_input)?;
        Ok::<_, Failure>((docker, run, group, clusters))
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let (docker, run, group, clusters) = prepared?;
    let NewClusterSource { name, base, nodes } = clusters;
    let labels = group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
    let record = ClusterRecord::new(docker.id(), &name, &run, Owner::current(), labels);
    evictlab_cluster::claim(&docker, state, &record).await.map_err(Failure::infrastructure)?;
    let new = NewCluster { record, group: &group, base: &base, nodes };
    let created = create_nodes(&docker, state, new, &interrupt).await;
    let error = match created {
        Ok(kubeconfig) => {
            print(format!("cluster {name} is ready; kubeconfig: {}", kubeconfig.display()))?;
            print(format!("run cases: evictlab run --backend kind --cluster {name}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        // The name belongs to another cluster.
        Err(error @ ClusterError::Exists(_)) => {
            state.forget(&name).map_err(Failure::infrastructure)?;
            return Err(Failure::bad_input(error));
        }
        Err(error) => error,
    };
    let deleted = tokio::select! {
        deleted = evictlab_cluster::delete(&docker, state, &name) => deleted,
        () = interrupt.reports_only.cancelled() => Ok(()),
    };
    match (interrupt.stop.is_cancelled(), deleted) {
        (true, Ok(())) => Err(Failure::interrupted()),
        (false, Ok(())) => Err(Failure::infrastructure(error)),
        (_, Err(left)) => Err(Failure::infrastructure(format!(
            "{error}\nerror: {left}\nhelp: delete the rest with `evictlab cluster delete {name}`"
        ))),
    }
}

/// Creates and keeps a cluster on kind. Returns the path of its kubeconfig.
async fn create_nodes(
    docker: &Docker,
    state: &StateDir,
    new: NewCluster<'_>,
    interrupt: &Interrupt,
) -> Result<PathBuf, ClusterError> {
    let step = |text: &str| print_stderr(text.trim());
    let progress = ClusterProgress { step: &step, warning: &print_warning };
    let mut cluster = Cluster::create(docker, state, new, &interrupt.stop, progress).await?;
    let separated = interrupt.stop.run_until_cancelled(cluster.separate_disks(&step)).await;
    separated.unwrap_or(Err(ClusterError::Interrupted))?;
    cluster.keep().await?;
    if interrupt.stop.is_cancelled() { Err(ClusterError::Interrupted) } else { Ok(cluster.kubeconfig()) }
}

/// Returns the only group of kubelets, or an error if they need several clusters.
fn single_group(mut groups: Vec<KubeletGroup>) -> Result<KubeletGroup, Failure> {
    match groups.pop() {
        Some(group) if groups.is_empty() => Ok(group),
        last => {
            groups.extend(last);
            let labels = |group: &KubeletGroup| {
                group.kubelets.iter().map(|kubelet| kubelet.label.as_str()).collect::<Vec<_>>().join(" and ")
            };
            Err(Failure::bad_input(format!(
                "failed to create a cluster with these kubelets: {}\nhelp: create one cluster for each of: {}",
                skew_policy(),
                groups.iter().map(labels).collect::<Vec<_>>().join("; ")
            )))
        }
    }
}

async fn list(json: bool, state: &StateDir) -> Result<ExitCode, Failure> {
    let mut all: Vec<ListedCluster> =
        ServedCluster::list(state).into_iter().map(Box::new).map(ListedCluster::Embedded).collect();
    let docker_is_named = std::env::var_os("DOCKER_HOST").is_some();
    match Docker::connect().await {
        Ok(docker) => {
            let found = evictlab_cluster::find(&docker, state).await.map_err(Failure::infrastructure)?;
            all.extend(found.into_iter().map(|found| ListedCluster::Kind(Box::new(found))));
        }
        // Kind clusters may exist, and nothing else does.
        Err(error) if all.is_empty() && (docker_is_named || !state.list().is_empty()) => {
            return Err(Failure::infrastructure(error));
        }
        // Neither a record nor DOCKER_HOST says that kind clusters exist, or there is a list to
        // print.
        Err(error) => print_stderr(format!("kind clusters are not listed: {error}")),
    }
    if json {
        print_json(&all)?;
    } else if all.is_empty() {
        print("no clusters")?;
    } else {
        let rows = all.iter().map(|listed| match listed {
            ListedCluster::Kind(found) => kind_row(found),
            ListedCluster::Embedded(served) => embedded_row(served),
        });
        print_table(&format_table(rows, stdout_width()))?;
        print(format!("\n{}", count_noun(all.len(), "cluster")))?;
    }
    Ok(ExitCode::SUCCESS)
}

const COLUMNS: [&str; 7] = ["CLUSTER", "BACKEND", "STATE", "KUBELETS", "CREATED", "OWNER", "CONTAINERS"];
/// Place of the kubelets in [`COLUMNS`].
const KUBELETS: usize = 3;
/// Minimum number of columns of the terminal for kubelets and times.
const MEDIUM_TERMINAL: u16 = 60;
/// Minimum number of columns of the terminal for all columns.
const WIDE_TERMINAL: u16 = 120;

/// Returns the table; on a terminal of this width, with the columns and the kubelets that fit.
fn format_table(rows: impl Iterator<Item = [String; 7]>, width: Option<u16>) -> String {
    let (count, kubelets_width) = match width {
        None => (COLUMNS.len(), usize::MAX),
        Some(..MEDIUM_TERMINAL) => (KUBELETS, 0),
        Some(..WIDE_TERMINAL) => (KUBELETS + 2, 22),
        Some(width) => (COLUMNS.len(), usize::from(width) - 96),
    };
    let rows = rows.map(|mut row| {
        row[KUBELETS] = shortened_list(&row[KUBELETS], kubelets_width);
        row.into_iter().take(count)
    });
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(&COLUMNS[..count]).add_rows(rows);
    table.trim_fmt()
}

/// Returns the words of a list that fit into a width, and the number of the others.
fn shortened_list(list: &str, width: usize) -> String {
    let words: Vec<&str> = list.split(' ').collect();
    let shown = |count: usize| match words.len() - count {
        0 => list.to_owned(),
        others => format!("{} +{others}", words[..count].join(" ")),
    };
    (1..=words.len()).rev().map(shown).find(|text| text.len() <= width).unwrap_or_else(|| shown(1))
}

fn kind_row(found: &KnownCluster) -> [String; 7] {
    let record = &found.record;
    let containers = if found.is_local {
        found.containers.len().to_string()
    } else {
        format!("on {}", record.docker_host)
    };
    let state = found.state.to_string();
    [
        record.cluster.clone(),
        "kind".to_owned(),
        state,
        record.kubelets.join(" "),
        time(record.created),
        owner(&record.owner),
        containers,
    ]
}

fn embedded_row(served: &ServedCluster) -> [String; 7] {
    [
        served.cluster.clone(),
        "embedded".to_owned(),
        served.state().to_string(),
        served.kubelets.join(" "),
        time(served.created),
        owner(&served.owner),
        String::new(),
    ]
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn owner(owner: &Owner) -> String {
    format!("{} on {}", owner.pid, owner.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_kubelets() {
        let kubelets: Vec<String> = (27..38).map(|minor| format!("v1.{minor}.10")).collect();
        let row = ["lab", "kind", "live", &kubelets.join(" "), "2026-12-01 00:28:14Z", "7578 on vm", "11"];
        let rows = [
            (None, "v1.36.10 v1.37.10", 7),
            (Some(200), "v1.37.10  2026", 7),
            (Some(120), "v1.28.10 +9  2026", 7),
            (Some(80), "v1.27.10 v1.28.10 +9  2026-12-01 00:28:14Z", 5),
            (Some(40), "live", 3),
        ];
        for (width, expected, columns) in rows {
            let table = format_table([row.map(str::to_owned)].into_iter(), width);
            let lines: Vec<&str> = table.lines().collect();
            assert_eq!(lines[0].split_whitespace().count(), columns, "{table}");
            assert!(lines[1].contains(expected), "{table}");
            assert!(lines.iter().all(|line| line.len() <= width.map_or(usize::MAX, usize::from)), "{table}");
        }
    }
}
