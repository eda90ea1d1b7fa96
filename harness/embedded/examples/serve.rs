//! Serves a cluster of one node until Ctrl-C, and writes a kubeconfig:
//!
//! ```text
//! cargo run -p evictlab-embedded --example serve -- [KUBELET VERSION] [KUBECONFIG]
//! ```

use std::error::Error;
use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use evictlab_embedded::Access;
use evictlab_embedded::{Cluster, ClusterOptions, NodeOptions};
use jiff::Timestamp;
use tokio::net::TcpListener;

#[expect(clippy::disallowed_methods, reason = "the served cluster starts at the present time")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let version = arguments.next().unwrap_or_else(|| "v1.32.13".into()).parse()?;
    let path = arguments.next().unwrap_or_else(|| "evictlab.kubeconfig".into());
    let node = NodeOptions::new("worker", version);
    let cluster = Cluster::new(ClusterOptions::new(1, Timestamp::now(), vec![node]))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let random = || RandomState::new().hash_one(listener.local_addr().ok());
    let access = Access::new(format!("{:016x}{:016x}", random(), random()))?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(access.kubeconfig(listener.local_addr()?).as_bytes())?;
    println!("export KUBECONFIG={path}");
    tokio::select! {
        biased;
        () = cluster.drive() => Ok(()),
        served = cluster.serve(listener, &access) => Ok(served?),
    }
}
