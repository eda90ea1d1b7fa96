//! `evictlab run`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{
    self, Base, Cluster, ClusterError, ClusterName, Clusters, Docker, EmbeddedBackend, ExistingBackend, Keep,
    KindBackend, Made, Owner, StateDir, Words,
};
use evictlab_runner::report::baseline::{self, Baseline};
use evictlab_runner::report::{Manners, Reports, RunDir, Wanted, reports};
use evictlab_runner::schedule::{self, Interrupt, Repeat, Request, new_id};
use evictlab_runner::select::select;

use super::backend::Backend;
use super::embedded::{EmbeddedArgs, impossible};
use super::existing::{self, ExistingArgs, only_when_made};
use super::kubelets::KubeletArgs;
use super::selection::SelectionArgs;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::tell;
use evictlab_runner::words::quoted;

/// Run cases on kubelets and judge what they say
///
/// Runs every selected case on each kubelet, prints a matrix of verdicts and leaves the evidence in a run directory. The kubelets are those
/// of an embedded cluster, a model that needs nothing installed; with `--backend kind`, real ones; with `--backend existing`, those of a
/// cluster that is there already.
///
/// Verdicts: passed; failed; reproduced (a known bug showed, as stated for this kubelet); fixed (it should have shown and did
/// not); inconclusive (the evidence does not suffice, and why); skipped; error (in which phase).
///
/// Exit status: 0 all passed, reproduced, fixed or skipped; 1 a case failed; 2 the input cannot be used; 3 inconclusive;
/// 4 the harness, a cluster or the host went wrong; 5 with --baseline: a verdict changed; 130 interrupted.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Where the nodes come from
    #[arg(long, value_enum, default_value_t = Backend::Embedded)]
    backend: Backend,
    /// Workers for each kubelet [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    nodes: Option<u8>,
    /// Run everything this often
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Run everything again and again until a case neither passes nor reproduces its bug
    #[arg(long, conflicts_with = "repeat")]
    until_it_fails: bool,
    /// End the whole run after this time, such as 30m; on the embedded cluster, of the model's time
    #[arg(long, value_name = "TIME", value_parser = humantime_duration)]
    timeout: Option<Duration>,
    /// Leave the run's files here [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    /// Also write each case as a recording, which tests of the rules can be fed with
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Hold the verdicts against this file, tell what changed, and exit with 5 if something did
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = baseline::DEFAULT)]
    baseline: Option<PathBuf>,
    /// Write the verdicts into this file, for later runs to be held against
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = baseline::DEFAULT)]
    write_baseline: Option<PathBuf>,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    new_cluster: NewClusterArgs,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    existing: ExistingArgs,
}

/// How a new kind cluster is made.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of kind clusters")]
pub struct NewClusterArgs {
    /// The new cluster's name
    #[arg(long, value_name = "NAME")]
    name: Option<ClusterName>,
    /// The kind configuration that the cluster is made from; its workers are replaced [default: the built-in
    /// kind-configs/default.yaml]
    #[arg(long, value_name = "FILE")]
    kind_config: Option<PathBuf>,
}

impl NewClusterArgs {
    /// A new cluster as asked for, with a name from the run's id if none was asked for.
    pub fn clusters(&self, run: &str, nodes: u8) -> Result<Clusters, Failure> {
        let base = Base::load(self.kind_config.as_deref()).map_err(bad_input)?;
        let name = self.name.as_ref().map_or_else(|| format!("evictlab-{run}"), ToString::to_string);
        Ok(Clusters::New { name, base, nodes: nodes.into() })
    }

    /// Which of them were given.
    pub fn given(&self) -> [(bool, &'static str); 2] {
        [(self.name.is_some(), "--name"), (self.kind_config.is_some(), "--kind-config")]
    }
}

/// Which kind clusters outlive the run.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of kind clusters")]
struct KeepArgs {
    /// Use this cluster, which was kept or made by `evictlab cluster create`
    #[arg(long = "cluster", value_name = "NAME", conflicts_with_all = ["name", "kind_config", "nodes", "keep", "keep_on_failure"])]
    reused: Option<String>,
    /// Leave the cluster when the run is over
    #[arg(long, conflicts_with = "keep_on_failure")]
    keep: bool,
    /// Leave the cluster when a case failed, was inconclusive or ended in an error
    #[arg(long)]
    keep_on_failure: bool,
}

impl KeepArgs {
    /// Which of them were given.
    fn given(&self) -> [(bool, &'static str); 3] {
        [
            (self.reused.is_some(), "--cluster"),
            (self.keep, "--keep"),
            (self.keep_on_failure, "--keep-on-failure"),
        ]
    }
}

fn humantime_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

/// A cluster that was asked for and cannot be used: it is not there or not for these kubelets, or it does not answer.
fn unusable(error: ClusterError) -> Failure {
    match error {
        ClusterError::Unknown(_) | ClusterError::NoWorker { .. } => bad_input(error),
        error => infrastructure(error),
    }
}

impl Args {
    /// Whether the run has a time of its own, which goes as fast as the work allows.
    pub fn has_model_time(&self) -> bool {
        self.backend == Backend::Embedded
    }

    fn nodes(&self) -> u8 {
        self.nodes.unwrap_or(1)
    }

    /// Refuses options of other backends than this one.
    fn refuse_strangers(&self) -> Result<(), Failure> {
        let backend = self.backend;
        if backend != Backend::Embedded {
            self.embedded.not_on(backend)?;
        }
        if backend != Backend::Kind {
            backend.refuse(Backend::Kind, &self.new_cluster.given())?;
            backend.refuse(Backend::Kind, &self.keep.given())?;
            backend.refuse(Backend::Kind, &self.kubelets.only_on_kind())?;
        }
        if backend != Backend::Existing {
            return backend.refuse(Backend::Existing, &self.existing.given());
        }
        only_when_made(&[(self.kubelets.any(), "--kubelet"), (self.nodes.is_some(), "--nodes")])
    }
}

/// Runs the selected cases. Where they have a model's time, the runtime's clock must be paused.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Before anything is made.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let clock = if args.has_model_time() { Clock::model() } else { Clock::wall() };
    let prepared = async {
        args.refuse_strangers()?;
        match args.backend {
            Backend::Embedded => embedded(args, &clock),
            Backend::Kind => kind(args).await,
            Backend::Existing => existing(args).await,
        }
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let mut request = prepared?;
    request.baseline = args.baseline.as_deref().map(Baseline::read).transpose().map_err(bad_input)?;
    let run_dir = match &args.output_dir {
        Some(dir) => RunDir::at(dir),
        None => RunDir::create("results".as_ref(), jiff::Timestamp::now()),
    }
    .map_err(bad_input)?;
    let wanted = Wanted {
        run_dir,
        stdout: Some(Manners::of_stdout()),
        record: args.record.clone(),
        write_baseline: args.write_baseline.clone(),
    };
    let reports = Reports::start(reports(wanted).map_err(bad_input)?, clock).map_err(infrastructure)?;
    schedule::run(request, reports.events(), interrupt).await;
    let finished = reports.finish();
    for failure in &finished.failures {
        tell(format_args!("error: {failure}"));
    }
    Ok(finished.exit_code.into())
}

/// A run on modelled kubelets.
fn embedded(args: &Args, clock: &Clock) -> Result<Request, Failure> {
    let cases = select(&args.selection.source(), &args.selection.selection())?;
    let lock = args.kubelets.lock()?;
    let kubelets = args.kubelets.modelled(&lock)?;
    let shape = args.embedded.shape(kubelets, args.nodes().into());
    let words = Words { options: quoted(&args.embedded.words()), on_real_kubelets: on_real_kubelets(args) };
    let backend = EmbeddedBackend::new(shape, words, clock).map_err(impossible)?;
    Ok(Request {
        run: new_id(),
        cases,
        backend: Box::new(backend),
        repeat: repeat(args),
        timeout: args.timeout,
        lock: Arc::new(lock),
        baseline: None,
    })
}

/// The command that runs the same on kind.
fn on_real_kubelets(args: &Args) -> String {
    let mut words = vec!["evictlab".to_owned(), "run".to_owned()];
    words.extend(args.selection.words());
    words.extend(["--backend".to_owned(), "kind".to_owned()]);
    words.extend(args.kubelets.words());
    let number = |name: &str, number: u32| [name.to_owned(), number.to_string()];
    if args.nodes() > 1 {
        words.extend(number("--nodes", args.nodes().into()));
    }
    if args.repeat > 1 {
        words.extend(number("--repeat", args.repeat));
    }
    if args.until_it_fails {
        words.push("--until-it-fails".to_owned());
    }
    quoted(&words)
}

fn repeat(args: &Args) -> Repeat {
    if args.until_it_fails { Repeat::UntilItFails } else { Repeat::Times(args.repeat) }
}

/// A run on real kubelets. Nothing is made.
async fn kind(args: &Args) -> Result<Request, Failure> {
    let KeepArgs { reused, keep, keep_on_failure } = &args.keep;
    let cases = select(&args.selection.source(), &args.selection.selection())?;
    let lock = args.kubelets.lock()?;
    let id = new_id();
    let clusters = match reused {
        Some(name) => Clusters::Kept(name.clone()),
        None => args.new_cluster.clusters(&id, args.nodes())?,
    };
    let state = StateDir::open().map_err(infrastructure)?;
    let docker = Docker::connect().await.map_err(infrastructure)?;
    cluster::kind_version().await.map_err(infrastructure)?;
    let kubelets = match (reused, args.kubelets.any()) {
        (Some(name), false) => cluster::kubelets_of(&docker, &state, name).await.map_err(unusable)?,
        (Some(name), true) => {
            let kubelets = args.kubelets.resolve(&docker, &lock).await?;
            Cluster::open(&docker, &state, name, &kubelets).await.map_err(unusable)?;
            kubelets
        }
        (None, _) => args.kubelets.resolve(&docker, &lock).await?,
    };
    let groups = match reused {
        Some(_) => cluster::one_group(kubelets),
        None => cluster::group(kubelets).map_err(bad_input)?,
    };
    cluster::free(&docker, &clusters, groups.len()).await.map_err(bad_input)?;
    let made = Made {
        run: id.clone(),
        groups,
        clusters,
        owner: Owner::this(),
        keep: match (keep, keep_on_failure) {
            (true, _) => Keep::Always,
            (_, true) => Keep::OnFailure,
            _ => Keep::Never,
        },
    };
    Ok(Request {
        run: id,
        cases,
        backend: Box::new(KindBackend::new(made, docker, state)),
        repeat: repeat(args),
        timeout: args.timeout,
        lock: Arc::new(lock),
        baseline: None,
    })
}

/// A run on a cluster that is there already. Nothing is made.
async fn existing(args: &Args) -> Result<Request, Failure> {
    let cases = select(&args.selection.source(), &args.selection.selection())?;
    let lock = args.kubelets.lock()?;
    let run = new_id();
    let reached = ExistingBackend::reach(&run, &args.existing.asked(), |name| lock.case_image(name)).await;
    Ok(Request {
        run,
        cases,
        backend: Box::new(reached.map_err(existing::unusable)?),
        repeat: repeat(args),
        timeout: args.timeout,
        lock: Arc::new(lock),
        baseline: None,
    })
}
