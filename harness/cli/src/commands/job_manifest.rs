//! `evictlab job manifest`

use std::process::ExitCode;
use std::time::Duration;

use evictlab_case::select::{Shard, select};
use evictlab_fault::parse_duration;
use evictlab_tools::job::{JobOptions, NodeSelector, Toleration, apply, manifest as objects, to_yaml};

use super::job_worker::run_args;
use crate::args::existing::{ExistingArgs, existing_failure};
use crate::args::job::{JobNameArgs, job_failure};
use crate::args::selection::SelectionArgs;
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::messages::print_stderr;
use crate::output::print;

/// Default image.
const IMAGE: &str = concat!("ghcr.io/YOUR-ORGANIZATION/evictlab:", env!("CARGO_PKG_VERSION"));
/// Default number of indexes for each that runs at a time: the last ones then keep the others
/// waiting for a small part of the whole time only.
const INDEXES_PER_WORKER: usize = 4;

/// Print the objects of a Job that runs cases, or create them
///
/// A service account, a ClusterRole with the least permissions, a priority class, and an Indexed
/// Job. Its pods are not scheduled to the nodes of --node-selector, which are those under
/// test.
///
/// Set --parallelism to the number of nodes under test of each kubelet version. More --indexes
/// balance the work; each adds the start of a run, about 20 s.
///
/// Exit status: 0 printed or created; 2 invalid input, or an object exists; 4 the cluster does not
/// answer, or denies access.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab job manifest message --node-selector pool=evictions --allow-disruption > job.yaml
  evictlab job manifest --node-selector pool=evictions --indexes 12 --parallelism 3 --apply
  evictlab job manifest ranking --node-selector pool=evictions --allow-disruption -- --repeat 3")]
pub(super) struct ManifestArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Create the objects
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    job: JobNameArgs,
    /// Image of evictlab
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// Number of indexes, each with one shard of the selection [default: 4 for each of
    /// --parallelism, at most one for each case]
    #[arg(long, value_name = "N", value_parser = whole_number::<u16>(1..))]
    indexes: Option<u16>,
    /// Number of indexes at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u16>(1..))]
    parallelism: u16,
    /// Retry an index this many times after a failure of its pod, its node or the harness; failed
    /// cases are not retried
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole_number::<u32>(..))]
    retries: u32,
    /// Stop the Job after this time
    #[arg(long, alias = "deadline", value_name = "DURATION", default_value = "6h", value_parser = parse_duration)]
    timeout: Duration,
    /// Taint that the pods of the Job tolerate, as `KEY[=VALUE][:EFFECT]` (repeatable)
    #[arg(long = "tolerate", value_name = "TAINT")]
    tolerations: Vec<Toleration>,
    /// Existing priority class of the pods of the Job [default: a new one, which does not preempt]
    #[arg(long, value_name = "NAME")]
    priority_class: Option<String>,
    #[command(flatten)]
    existing: ExistingArgs,
    /// Options of `evictlab run` in each index
    #[arg(last = true, value_name = "RUN OPTIONS")]
    run_options: Vec<String>,
}

/// Prints or creates the objects.
pub(super) async fn manifest(args: &ManifestArgs) -> Result<ExitCode, Failure> {
    let options = args.options()?;
    let objects = objects(&options);
    if !args.apply {
        print(to_yaml(&objects).map_err(Failure::infrastructure)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let cluster = args.existing.access().connect().await.map_err(existing_failure)?;
    let created = |object: &str| print_stderr(format_args!("created {object}"));
    apply(&cluster, &options.job, &objects, created).await.map_err(job_failure)?;
    Ok(ExitCode::SUCCESS)
}

impl ManifestArgs {
    fn options(&self) -> Result<JobOptions, Failure> {
        let (job, with_namespace) = self.job.job();
        let cases = self.count_cases()?;
        let parallelism = usize::from(self.parallelism);
        let default = (INDEXES_PER_WORKER * parallelism).min(cases);
        let indexes = self.indexes.map_or(default, usize::from);
        if indexes > cases {
            return Err(Failure::bad_input(format!(
                "failed to split the cases: {indexes} indexes are more than the {cases} selected cases\nhelp: use at most --indexes {cases}"
            )));
        }
        let options = JobOptions {
            job,
            with_namespace,
            image: self.image.clone(),
            indexes,
            parallelism: parallelism.min(indexes),
            retries: self.retries,
            deadline: self.timeout,
            node_selector: self.node_selector()?,
            tolerations: self.tolerations.clone(),
            priority_class: self.priority_class.clone(),
            run: self.run_words(),
        };
        // The pods would fail with the same error.
        run_args(&options.run, Shard { part: 1, of: indexes }, "results")?;
        Ok(options)
    }

    fn node_selector(&self) -> Result<NodeSelector, Failure> {
        match self.existing.node_selector() {
            Some(selector) => selector
                .parse()
                .map_err(|problem| Failure::bad_input(format!("failed to parse --node-selector: {problem}"))),
            None => Err(Failure::bad_input(
                "failed to select the nodes under test: --node-selector is missing\nhelp: label them, and name the label with --node-selector: the pods of the job keep off them",
            )),
        }
    }

    /// Counts the selected cases. The image contains the built-in ones only.
    fn count_cases(&self) -> Result<usize, Failure> {
        let is_file = |name: &&String| name.starts_with(['.', '/']) || name.ends_with(".yaml");
        if let Some(file) = self.selection.names().iter().find(is_file) {
            return Err(Failure::bad_input(format!(
                "failed to use case file {file}: it is not in the image\nhelp: select built-in cases by suite, name or label"
            )));
        }
        if self.selection.shard().is_some() {
            return Err(Failure::bad_input(
                "failed to apply --shard: each index of the job is a shard\nhelp: use --indexes instead of --shard",
            ));
        }
        Ok(select(&self.selection.source(), &self.selection.selection())?.len())
    }

    /// Arguments of the runs. Indexes that run at a time share the nodes.
    fn run_words(&self) -> Vec<String> {
        let mut words = self.selection.words();
        words.extend(self.existing.words());
        if self.parallelism > 1 && !words.iter().any(|word| word == "--nodes-per-version") {
            words.extend(["--nodes-per-version".to_owned(), "1".to_owned()]);
        }
        words.extend(self.run_options.iter().cloned());
        words
    }
}
