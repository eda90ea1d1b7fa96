//! `evictlab cluster create --backend embedded`: a model that serves a person, in the wall's time.

use std::io::Write;
use std::process::ExitCode;

use evictlab_embedded::Cluster;
use evictlab_embedded::api::Access;
use evictlab_runner::cluster::Shape;
use evictlab_runner::schedule::{Interrupt, new_id};
use jiff::Timestamp;
use tokio::net::TcpListener;

use super::embedded::impossible;
use crate::failure::{Failure, infrastructure};
use crate::output::print;

/// Serves an embedded cluster on this machine until it is interrupted. Its kubeconfig goes with it.
pub async fn serve(shape: &Shape) -> Result<ExitCode, Failure> {
    // Before anything is made.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let mut options = shape.options(Timestamp::now());
    options.faults.clone_from(&shape.faults);
    let cluster = Cluster::new(options).map_err(impossible)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(infrastructure)?;
    let address = listener.local_addr().map_err(infrastructure)?;
    let token: String = (0..4).map(|_| new_id()).collect();
    let access = Access::new(token).map_err(infrastructure)?;
    let mut file = tempfile::Builder::new()
        .prefix("evictlab-")
        .suffix(".kubeconfig")
        .tempfile()
        .map_err(infrastructure)?;
    file.write_all(access.kubeconfig(address).as_bytes()).map_err(infrastructure)?;
    for (name, place) in shape.names() {
        print(format!("{name}: a model of kubelet {}", shape.kubelets[place].version))?;
    }
    print(format!("\nexport KUBECONFIG={}\nkubectl get pods -A\n", file.path().display()))?;
    print("The cluster lives until Ctrl-C.")?;
    tokio::select! {
        biased;
        () = interrupt.stop.cancelled() => Ok(ExitCode::SUCCESS),
        served = cluster.serve(listener, &access) => served.map(|()| ExitCode::SUCCESS).map_err(infrastructure),
        () = cluster.live() => Ok(ExitCode::SUCCESS),
    }
}
