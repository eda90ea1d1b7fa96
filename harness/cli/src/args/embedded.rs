//! Arguments of the embedded cluster.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use evictlab_cluster::{EmbeddedBackend, EmbeddedOptions, Kubelet, ReproCommand};
use evictlab_embedded::{CgroupVersion, Defect, OptionsError};
use evictlab_fault::{Fault, ScriptError};
use evictlab_report::BackendName;
use evictlab_report::clock::Clock;
use evictlab_report::text::shell_quote;

use crate::args::backend::reject_foreign_options;
use crate::args::candidates;
use crate::args::values::{ByteSize, whole_number};
use crate::failure::Failure;

/// Options of an embedded cluster.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of the embedded cluster")]
pub(crate) struct EmbeddedArgs {
    /// Random seed; runs with the same seed are identical [default: 0]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(..))]
    seed: Option<u64>,
    /// cgroup version of the nodes, v1 or v2; on v1, the kernel notifies the kubelet of memory
    /// pressure [default: v2]
    #[arg(long, value_name = "VERSION")]
    cgroup: Option<CgroupVersion>,
    /// Memory of each node, such as 8Gi [default: 16Gi]
    #[arg(long, value_name = "SIZE")]
    node_memory: Option<ByteSize>,
    /// Disk of each node, such as 40Gi [default: 100Gi]
    #[arg(long, value_name = "SIZE")]
    node_disk: Option<ByteSize>,
    /// Maximum number of processes of each node [default: 120000]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(..))]
    node_pids: Option<u64>,
    /// Fault to inject into every case: a YAML file, or YAML such as `event-lost: {times: 1}`
    /// (repeatable)
    #[arg(long = "fault", value_name = "SCRIPT", add = ArgValueCompleter::new(candidates::complete_case_file))]
    faults: Vec<FaultScript>,
    /// Defect of the kubelets, see `evictlab mutants list` (repeatable)
    #[arg(long = "defect", value_name = "NAME", add = ArgValueCandidates::new(candidates::defects))]
    defects: Vec<Defect>,
}

/// A fault script and its text from the command line.
#[derive(Clone, Debug)]
struct FaultScript {
    text: String,
    faults: Vec<Fault>,
}

impl FromStr for FaultScript {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        let yaml = if path.is_file() {
            fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))?
        } else {
            text.to_owned()
        };
        let faults = evictlab_fault::parse(&yaml).map_err(|error| match error {
            ScriptError::Syntax(error) => {
                let file = if path.is_file() { text } else { "--fault" };
                evictlab_case::yaml_problem(file, &yaml, &error).to_string()
            }
            other => other.to_string(),
        })?;
        Ok(Self { text: text.to_owned(), faults })
    }
}

impl EmbeddedArgs {
    /// Returns the options of a cluster with these kubelets and `nodes` nodes for each.
    pub(crate) fn options(&self, kubelets: Vec<Kubelet>, nodes: usize) -> EmbeddedOptions {
        let bytes = |size: &Option<ByteSize>| size.as_ref().map(|size| size.bytes);
        EmbeddedOptions {
            kubelets,
            nodes,
            seed: self.seed.unwrap_or(0),
            cgroup: self.cgroup.unwrap_or_default(),
            memory: bytes(&self.node_memory),
            disk: bytes(&self.node_disk),
            pids: self.node_pids,
            faults: self.faults.iter().flat_map(|script| script.faults.clone()).collect(),
            defects: self.defects.iter().copied().collect(),
            ..EmbeddedOptions::default()
        }
    }

    /// Returns the backend for a run. `kind_command` is the command that does the same on kind.
    pub(crate) fn backend(
        &self,
        kubelets: Vec<Kubelet>,
        nodes: usize,
        kind_command: String,
        clock: &Clock,
    ) -> Result<EmbeddedBackend, Failure> {
        let words = ReproCommand { options: shell_quote(&self.words()), on_real_kubelets: kind_command };
        EmbeddedBackend::new(self.options(kubelets, nodes), words, clock).map_err(options_failure)
    }

    /// Returns the arguments from the command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let cgroup = self.cgroup.map(|cgroup| cgroup.to_string());
        let size = |size: &Option<ByteSize>| size.as_ref().map(|size| size.text.clone());
        let single = [
            ("--seed", self.seed.map(|seed| seed.to_string())),
            ("--cgroup", cgroup),
            ("--node-memory", size(&self.node_memory)),
            ("--node-disk", size(&self.node_disk)),
            ("--node-pids", self.node_pids.map(|pids| pids.to_string())),
        ];
        let faults = self.faults.iter().map(|script| ("--fault", Some(script.text.clone())));
        let defects = self.defects.iter().map(|defect| ("--defect", Some(defect.to_string())));
        let given = single
            .into_iter()
            .chain(faults)
            .chain(defects)
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    /// Rejects these options on another backend.
    pub(crate) fn reject_on(&self, backend: BackendName) -> Result<(), Failure> {
        let words = self.words();
        // The first word is the name of an option.
        let first: Vec<&str> = words.first().map(String::as_str).into_iter().collect();
        reject_foreign_options(backend, BackendName::Embedded, &first)
    }
}

/// Returns the failure for invalid node sizes, and names the option if one causes it.
pub(crate) fn options_failure(error: OptionsError) -> Failure {
    let field = error.place.rsplit(' ').next().unwrap_or_default();
    let option = [("memory", "node-memory"), ("disk", "node-disk"), ("pid", "node-pids")]
        .into_iter()
        .find_map(|(part, option)| field.contains(part).then_some(option));
    match option {
        Some(option) => {
            Failure::bad_input(format!("failed to apply --{option}: {}", error.problem)).of_option(option)
        }
        None => Failure::bad_input(format!("failed to configure the nodes: {error}")),
    }
}
