//! `evictlab cluster create --backend embedded`: an embedded cluster that runs in real time.

use std::io::Write;
use std::process::ExitCode;

use evictlab_cluster::EmbeddedOptions;
use evictlab_embedded::Cluster;
use evictlab_embedded::http::Access;
use evictlab_runner::{Interrupt, new_run_id};
use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::args::embedded::options_failure;
use crate::failure::{Failure, infrastructure};
use crate::output::print;

/// Serves an embedded cluster on this machine until an interrupt, and deletes its kubeconfig.
pub(crate) async fn serve(embedded: &EmbeddedOptions) -> Result<ExitCode, Failure> {
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let mut options = embedded.options(Timestamp::now());
    options.faults.clone_from(&embedded.faults);
    let cluster = Cluster::new(options).map_err(options_failure)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(infrastructure)?;
    let address = listener.local_addr().map_err(infrastructure)?;
    let token: String = (0..4).map(|_| new_run_id()).collect();
    let access = Access::new(token).map_err(infrastructure)?;
    let mut file = tempfile::Builder::new()
        .prefix("evictlab-")
        .suffix(".kubeconfig")
        .tempfile()
        .map_err(infrastructure)?;
    file.write_all(access.kubeconfig(address).as_bytes()).map_err(infrastructure)?;
    for (name, place) in embedded.names() {
        print(format!("{name}: model of kubelet {}", embedded.kubelets[place].version))?;
    }
    print(format!("\nexport KUBECONFIG={}\nkubectl get pods -A\n", file.path().display()))?;
    print("The cluster exists until Ctrl-C.")?;
    tokio::select! {
        biased;
        () = interrupt.stop.cancelled() => Ok(ExitCode::SUCCESS),
        served = cluster.serve(listener, &access) => served.map(|()| ExitCode::SUCCESS).map_err(infrastructure),
        () = cluster.live() => Ok(ExitCode::SUCCESS),
    }
}
