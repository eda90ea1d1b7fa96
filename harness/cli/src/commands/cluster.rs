//! `evictlab cluster`

use std::process::ExitCode;

use clap::Subcommand;
use comfy_table::{Table, presets};
use evictlab_runner::cluster::{self, Cluster, Docker, Found, Owner, Record, StateDir};
use evictlab_runner::report::exit_code;
use evictlab_runner::schedule::{self, Clusters, DEADLINE, Interrupt, new_id};

use super::kubelets::KubeletArgs;
use super::run::NewClusterArgs;
use crate::failure::Failure;
use crate::output::{count, print};

/// Make, list and delete clusters that outlive a run
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a cluster with a worker for each kubelet and keep it, for `evictlab run --cluster NAME`
    Create(CreateArgs),
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
struct CreateArgs {
    #[command(flatten)]
    kubelets: KubeletArgs,
    #[command(flatten)]
    cluster: NewClusterArgs,
}

fn infrastructure(error: impl ToString) -> Failure {
    Failure::new(error, exit_code::INFRASTRUCTURE)
}

fn bad_input(error: impl ToString) -> Failure {
    Failure::new(error, Failure::BAD_INPUT)
}

/// Does what the subcommand says.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
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
    let run = new_id();
    let clusters = args.cluster.clusters(&run)?;
    let docker = Docker::connect().await.map_err(infrastructure)?;
    cluster::kind_version().await.map_err(infrastructure)?;
    let lock = args.kubelets.lock()?;
    let kubelets = args.kubelets.resolve(&docker, &lock).await?;
    let groups = cluster::group(kubelets).map_err(bad_input)?;
    let [group] = groups.as_slice() else {
        let each: Vec<String> = groups
            .iter()
            .map(|group| {
                let labels: Vec<&str> = group.kubelets.iter().map(|kubelet| kubelet.label.as_str()).collect();
                labels.join(" and ")
            })
            .collect();
        return Err(bad_input(format!(
            "these kubelets cannot share a cluster: an API server takes kubelets up to three minors older than itself, and none newer\nMake one cluster for each of: {}.",
            each.join("; ")
        )));
    };
    schedule::free(&docker, &clusters, 1).await.map_err(bad_input)?;
    let Clusters::New { name, base, nodes } = clusters else { return Ok(ExitCode::SUCCESS) };
    let labels = group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
    let record = Record::new(&name, &run, Owner::this(), labels, DEADLINE);
    state.write(&record).map_err(infrastructure)?;
    let interrupt = Interrupt::default();
    tokio::spawn(interrupt.clone().on_signals(|_| {}));
    let step = |text: &str| eprintln!("{}", text.trim());
    let made = Cluster::create(&docker, state, record, (group, &base, nodes), &interrupt.stop, step).await;
    let kept = match made {
        Ok(mut cluster) => cluster.keep().await.map(|()| cluster),
        Err(error) => Err(error),
    };
    match kept {
        Ok(cluster) => {
            print(format!("cluster {name} is ready; its kubeconfig: {}", cluster.kubeconfig().display()))?;
            print(format!("run on it: evictlab run --cluster {name}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            cluster::delete(&docker, state, &name).await.map_err(infrastructure)?;
            let status = if interrupt.stop.is_cancelled() {
                exit_code::INTERRUPTED
            } else {
                exit_code::INFRASTRUCTURE
            };
            Err(Failure::new(error, status))
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
