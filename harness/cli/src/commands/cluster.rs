//! `evictlab cluster`

use std::process::ExitCode;

use clap::Subcommand;
use comfy_table::{Table, presets};
use evictlab_runner::cluster::{
    self, Cluster, Clusters, DEADLINE, Docker, Found, Group, Owner, Record, StateDir,
};
use evictlab_runner::schedule::{Interrupt, new_id};

use super::backend::Backend;
use super::embedded::EmbeddedArgs;
use super::kubelets::KubeletArgs;
use super::new_cluster::NewClusterArgs;
use super::serve::serve;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::{count, print, tell};

/// Make, list and delete clusters that outlive a run
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a cluster with a worker for each kubelet and keep it, for `evictlab run --backend kind --cluster NAME`, or serve an embedded one
    ///
    /// Exit status: 0 it is ready; 2 the input cannot be used; 4 it could not be made, and nothing of it is left; 130 interrupted.
    Create(Box<CreateArgs>),
    /// List the clusters that evictlab made
    List {
        /// Print a JSON array instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Delete a cluster that evictlab made
    Delete {
        /// Its name
        name: String,
    },
    /// Print the path of a cluster's kubeconfig
    Kubeconfig {
        /// Its name
        name: String,
    },
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab cluster create --name lab --kubelet v1.31 --kubelet ./kubelet --nodes 3
  evictlab run --backend kind --cluster lab
  evictlab cluster create --backend embedded --kubelet v1.36")]
struct CreateArgs {
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Where the nodes come from; an embedded cluster lives as long as this command
    #[arg(long, value_enum, default_value_t = Backend::Kind)]
    backend: Backend,
    /// Workers for each kubelet
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    nodes: u8,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    cluster: NewClusterArgs,
}

/// Does what the subcommand says.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Command::Create(args) = &args.command
        && args.backend == Backend::Existing
    {
        return Err(bad_input(
            "an existing cluster is there already: `evictlab run --backend existing` runs on it",
        ));
    }
    if let Command::Create(args) = &args.command
        && args.backend == Backend::Embedded
    {
        args.backend.refuse(Backend::Kind, &args.cluster.given())?;
        let kubelets = args.kubelets.modelled(&args.kubelets.lock()?)?;
        return serve(&args.embedded.shape(kubelets, args.nodes.into())).await;
    }
    let state = StateDir::open().map_err(infrastructure)?;
    match &args.command {
        Command::Create(args) => create(args, &state).await,
        Command::List { json } => list(*json, &state).await,
        Command::Delete { name } => {
            let docker = Docker::connect().await.map_err(infrastructure)?;
            found(&docker, &state, name).await?;
            cluster::delete(&docker, &state, name).await.map_err(infrastructure)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Kubeconfig { name } => {
            let path = state.kubeconfig(name);
            if !path.is_file() {
                return Err(bad_input(cluster::ClusterError::Unknown(name.clone())));
            }
            print(path.display())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn create(args: &CreateArgs, state: &StateDir) -> Result<ExitCode, Failure> {
    args.embedded.not_on(args.backend)?;
    // Before anything is made.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let plan = async {
        let run = new_id();
        let clusters = args.cluster.clusters(&run, args.nodes)?;
        let docker = Docker::connect().await.map_err(infrastructure)?;
        cluster::kind_version().await.map_err(infrastructure)?;
        let lock = args.kubelets.lock()?;
        let kubelets = args.kubelets.resolve(&docker, &lock).await?;
        let group = one_cluster(cluster::group(kubelets).map_err(bad_input)?)?;
        cluster::free(&docker, &clusters, 1).await.map_err(bad_input)?;
        Ok::<_, Failure>((docker, run, group, clusters))
    };
    let Some(planned) = interrupt.or_none(plan).await else { return Err(Failure::interrupted()) };
    let (docker, run, group, clusters) = planned?;
    let Clusters::New { name, base, nodes } = clusters else { return Ok(ExitCode::SUCCESS) };
    let labels = group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
    let record = Record::new(&name, &run, Owner::this(), labels, DEADLINE);
    cluster::claim(&docker, state, &record).await.map_err(infrastructure)?;
    let step = |text: &str| tell(text.trim());
    let plan = (&group, &base, nodes);
    let work = async {
        let mut cluster = Cluster::create(&docker, state, record, plan, &interrupt.stop, step).await?;
        cluster.keep().await?;
        match interrupt.stop.is_cancelled() {
            true => Err(cluster::ClusterError::Interrupted),
            false => Ok(cluster.kubeconfig()),
        }
    };
    let error = match work.await {
        Ok(kubeconfig) => {
            print(format!("cluster {name} is ready; its kubeconfig: {}", kubeconfig.display()))?;
            print(format!("run on it: evictlab run --backend kind --cluster {name}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        // It is another's.
        Err(error @ cluster::ClusterError::Exists(_)) => {
            state.forget(&name).map_err(infrastructure)?;
            return Err(bad_input(error));
        }
        Err(error) => error,
    };
    tokio::select! {
        deleted = cluster::delete(&docker, state, &name) => deleted.map_err(infrastructure)?,
        () = interrupt.reports_only.cancelled() => {}
    }
    match interrupt.stop.is_cancelled() {
        true => Err(Failure::interrupted()),
        false => Err(infrastructure(error)),
    }
}

/// The one group of kubelets, or why they need several clusters.
fn one_cluster(mut groups: Vec<Group>) -> Result<Group, Failure> {
    match groups.pop() {
        Some(group) if groups.is_empty() => Ok(group),
        last => {
            groups.extend(last);
            let labels = |group: &Group| {
                group.kubelets.iter().map(|kubelet| kubelet.label.as_str()).collect::<Vec<_>>().join(" and ")
            };
            Err(bad_input(format!(
                "these kubelets cannot share a cluster: an API server takes kubelets up to three minors older than itself, and none newer\nMake one cluster for each of: {}.",
                groups.iter().map(labels).collect::<Vec<_>>().join("; ")
            )))
        }
    }
}

async fn found(docker: &Docker, state: &StateDir, name: &str) -> Result<Found, Failure> {
    let all = cluster::find(docker, state).await.map_err(infrastructure)?;
    all.into_iter()
        .find(|found| found.record.cluster == name)
        .ok_or_else(|| bad_input(cluster::ClusterError::Unknown(name.to_owned())))
}

async fn list(json: bool, state: &StateDir) -> Result<ExitCode, Failure> {
    let docker = Docker::connect().await.map_err(infrastructure)?;
    let all = cluster::find(&docker, state).await.map_err(infrastructure)?;
    if json {
        print(serde_json::to_string_pretty(&all).map_err(infrastructure)?)?;
    } else if all.is_empty() {
        print("no clusters")?;
    } else {
        print(table(&all))?;
        print(format!("\n{}", count(all.len(), "cluster")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Clusters as a table.
pub fn table(all: &[Found]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "CLUSTER",
        "STANDING",
        "KUBELETS",
        "MADE",
        "OWNER",
        "CONTAINERS",
    ]);
    for found in all {
        let record = &found.record;
        table.add_row([
            record.cluster.clone(),
            found.standing.to_string(),
            record.kubelets.join(" "),
            record.created.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
            format!("{} on {}", record.owner.pid, record.owner.host),
            match (found.here, found.containers.len()) {
                (false, _) => format!("on {}", record.docker_host),
                (true, count) => count.to_string(),
            },
        ]);
    }
    table.trim_fmt()
}
