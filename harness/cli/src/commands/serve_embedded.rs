//! `evictlab cluster create --backend embedded`: an embedded cluster that runs in real time.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use evictlab_cluster::{EmbeddedOptions, ServedCluster, ServedError, ServerCommand, StateDir};
use evictlab_embedded::{Access, Cluster};
use evictlab_report::create_private;
use evictlab_report::text::first_of;
use evictlab_runner::{Interrupt, new_run_id};
use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::args::embedded::options_failure;
use crate::failure::Failure;
use crate::output::print;

/// Nodes of a kubelet version that are printed by name.
const MAX_NODES: usize = 8;
/// Interval at which a starting server is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Beginning of the last line that a server prints.
const READY: &str = "The cluster exists until ";

/// Serves an embedded cluster on this machine until an interrupt, and deletes its kubeconfig.
/// Without a name it gets a random one.
pub(crate) async fn serve(embedded: &EmbeddedOptions, name: Option<&str>) -> Result<ExitCode, Failure> {
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let mut options = embedded.options(Timestamp::now());
    options.faults.clone_from(&embedded.faults);
    let cluster = Cluster::new(options).map_err(options_failure)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(Failure::infrastructure)?;
    let address = listener.local_addr().map_err(Failure::infrastructure)?;
    let token: String = (0..4).map(|_| new_run_id()).collect();
    let access = Access::new(token).map_err(Failure::infrastructure)?;
    let served = Served::write(&access.kubeconfig(address), name, embedded)?;
    // The directory in which the command was started can be deleted or unmounted.
    std::env::set_current_dir("/").map_err(Failure::infrastructure)?;
    let name = &served.cluster.cluster;
    let names = embedded.names();
    for (index, kubelet) in embedded.kubelets.iter().enumerate() {
        let nodes = names.iter().filter(|(_, kubelet)| *kubelet == index).map(|(node, _)| node.clone());
        let nodes = first_of(&nodes.collect::<Vec<_>>(), MAX_NODES);
        print(format!("model of kubelet {}: {nodes}", kubelet.version))?;
    }
    print(format!("\nexport KUBECONFIG={}\nkubectl get pods -A\n", served.kubeconfig().display()))?;
    print(format!("{READY}Ctrl-C or `evictlab cluster delete {name}`."))?;
    let result = tokio::select! {
        biased;
        () = interrupt.stop.cancelled() => Ok(ExitCode::SUCCESS),
        served = cluster.serve(listener, &access) => served.map(|()| ExitCode::SUCCESS).map_err(Failure::infrastructure),
        () = cluster.drive() => Ok(ExitCode::SUCCESS),
    };
    drop(served);
    result
}

/// Record and kubeconfig of a cluster in the state directory, which are deleted when it is dropped.
/// After SIGKILL, the next command that lists clusters deletes them.
struct Served {
    cluster: ServedCluster,
    state: StateDir,
}

impl Served {
    fn write(kubeconfig: &str, name: Option<&str>, embedded: &EmbeddedOptions) -> Result<Self, Failure> {
        let state = StateDir::open().map_err(Failure::infrastructure)?;
        let mut command = this_command()?;
        let name = name.map_or_else(|| random_name(&mut command), str::to_owned);
        let versions = embedded.kubelets.iter().map(|kubelet| kubelet.version.to_string()).collect();
        let cluster = ServedCluster::claim(&state, &name, versions, command).map_err(Failure::bad_input)?;
        let served = Self { cluster, state };
        let path = served.state.create_kubeconfig(&name).map_err(Failure::infrastructure)?;
        fs::write(path, kubeconfig).map_err(Failure::infrastructure)?;
        Ok(served)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state.kubeconfig(&self.cluster.cluster)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.cluster.forget(&self.state);
    }
}

/// Returns a random name, and adds it to the command that starts the server again.
fn random_name(command: &mut ServerCommand) -> String {
    let name = format!("evictlab-{}", new_run_id());
    command.arguments.extend(["--name".to_owned(), name.clone()]);
    name
}

/// The command of this process without `--detach`.
pub(crate) fn this_command() -> Result<ServerCommand, Failure> {
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--detach");
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    Ok(ServerCommand { arguments, directory: std::env::current_dir().map_err(Failure::infrastructure)? })
}

/// Starts a server in the background, and waits until it serves.
pub(crate) async fn detach(name: &str, command: &ServerCommand) -> Result<ExitCode, Failure> {
    let state = StateDir::open().map_err(Failure::infrastructure)?;
    if ServedCluster::list(&state).iter().any(|served| served.cluster == name) {
        return Err(Failure::bad_input(ServedError::Exists(name.to_owned())));
    }
    let directory = &command.directory;
    if !directory.is_dir() {
        return Err(Failure::bad_input(format!(
            "failed to start the server of {name}: its directory {} does not exist any more\n\
             help: create the directory again, or delete the cluster: evictlab cluster delete {name}",
            directory.display()
        )));
    }
    let path = state.served_log(name);
    let failed = |error: std::io::Error| {
        Failure::infrastructure(format!("failed to start the server of {name}: {error}"))
    };
    let log = create_private(&path).map_err(failed)?;
    let mut server = std::process::Command::new(std::env::current_exe().map_err(failed)?)
        .args(&command.arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stderr(log.try_clone().map_err(failed)?)
        .stdout(log)
        // Ctrl-C in this terminal does not reach it.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    loop {
        let printed = fs::read_to_string(&path).unwrap_or_default();
        if printed.contains(READY) {
            print(printed.trim_end().replace("Ctrl-C or ", ""))?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = server.try_wait().map_err(failed)? {
            let _ignored = fs::remove_file(&path);
            let problem = printed.trim().trim_start_matches("error: ").to_owned();
            return Err(if status.code() == Some(2) {
                Failure::bad_input(problem)
            } else {
                Failure::infrastructure(problem)
            });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
