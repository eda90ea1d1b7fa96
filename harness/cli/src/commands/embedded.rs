//! The arguments that make an embedded cluster, and those that do not go with one.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use evictlab_embedded::fault::Fault;
use evictlab_embedded::{CgroupVersion, OptionsError};
use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{EmbeddedBackend, Kubelet, Shape, Words};
use evictlab_runner::words::quoted;

use super::backend::Backend;
use super::size::Size;
use crate::failure::{Failure, bad_input};

/// How an embedded cluster is made.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of the embedded cluster")]
pub struct EmbeddedArgs {
    /// Where all chance comes from: with the same number everything happens again [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The kernel's control groups, v1 or v2: on v1 a kubelet is notified when memory runs low [default: v2]
    #[arg(long, value_name = "VERSION")]
    cgroup: Option<CgroupVersion>,
    /// Memory of each node, such as 8Gi [default: 16Gi]
    #[arg(long, value_name = "SIZE")]
    node_memory: Option<Size>,
    /// Disk of each node, such as 40Gi [default: 100Gi]
    #[arg(long, value_name = "SIZE")]
    node_disk: Option<Size>,
    /// The highest process number of each node [default: 120000]
    #[arg(long, value_name = "N")]
    node_pids: Option<u64>,
    /// What goes wrong in every case: a YAML file, or YAML such as `event-lost: {times: 1}` (may be given again)
    #[arg(long = "fault", value_name = "SCRIPT")]
    faults: Vec<Script>,
}

/// A fault script with the text that it came from.
#[derive(Clone, Debug)]
struct Script {
    text: String,
    faults: Vec<Fault>,
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        let yaml = match path.is_file() {
            true => fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))?,
            false => text.to_owned(),
        };
        let faults = evictlab_embedded::fault::parse(&yaml).map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), faults })
    }
}

impl EmbeddedArgs {
    /// The cluster that they ask for.
    pub fn shape(&self, kubelets: Vec<Kubelet>, nodes: usize) -> Shape {
        let bytes = |size: &Option<Size>| size.as_ref().map(|size| size.bytes);
        Shape {
            kubelets,
            nodes,
            seed: self.seed.unwrap_or(0),
            cgroup: self.cgroup.unwrap_or_default(),
            memory: bytes(&self.node_memory),
            disk: bytes(&self.node_disk),
            pids: self.node_pids,
            faults: self.faults.iter().flat_map(|script| script.faults.clone()).collect(),
        }
    }

    /// The cluster that they ask for, for a run. `on_real_kubelets`: the command that does the same on kind.
    pub fn backend(
        &self,
        kubelets: Vec<Kubelet>,
        nodes: usize,
        on_real_kubelets: String,
        clock: &Clock,
    ) -> Result<EmbeddedBackend, Failure> {
        let words = Words { options: quoted(&self.words()), on_real_kubelets };
        EmbeddedBackend::new(self.shape(kubelets, nodes), words, clock).map_err(impossible)
    }

    /// The arguments as they were given.
    pub fn words(&self) -> Vec<String> {
        let cgroup = self.cgroup.map(|cgroup| match cgroup {
            CgroupVersion::V1 => "v1".to_owned(),
            CgroupVersion::V2 => "v2".to_owned(),
        });
        let size = |size: &Option<Size>| size.as_ref().map(|size| size.text.clone());
        let single = [
            ("--seed", self.seed.map(|seed| seed.to_string())),
            ("--cgroup", cgroup),
            ("--node-memory", size(&self.node_memory)),
            ("--node-disk", size(&self.node_disk)),
            ("--node-pids", self.node_pids.map(|pids| pids.to_string())),
        ];
        let faults = self.faults.iter().map(|script| ("--fault", Some(script.text.clone())));
        let given =
            single.into_iter().chain(faults).filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    /// Refuses them on another backend.
    pub fn not_on(&self, backend: Backend) -> Result<(), Failure> {
        let words = self.words();
        let first: Vec<(bool, &str)> = words.first().iter().map(|name| (true, name.as_str())).collect();
        backend.refuse(Backend::Embedded, &first)
    }
}

/// Nodes that cannot be, told by the option that asks for them.
pub fn impossible(error: OptionsError) -> Failure {
    let field = error.place.rsplit(' ').next().unwrap_or_default();
    let option = [("memory", "--node-memory"), ("disk", "--node-disk"), ("pid", "--node-pids")]
        .into_iter()
        .find_map(|(part, option)| field.contains(part).then_some(option));
    match option {
        Some(option) => bad_input(format!("{option}: {}", error.problem)),
        None => bad_input(error),
    }
}
