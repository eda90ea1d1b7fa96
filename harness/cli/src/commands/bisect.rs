//! `evictlab bisect`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap_complete::engine::ArgValueCandidates;
use evictlab_case::LoadedCase;
use evictlab_case::select::{Selection, select};
use evictlab_cluster::images::{ImageCatalog, KubeletResolver};
use evictlab_cluster::{Backend, KeepPolicy, Kubelet, KubeletSource, KubeletSpec};
use evictlab_report::clock::Clock;
use evictlab_report::words::shell_quote;
use evictlab_report::{InterruptStage, ReportOptions, RunDir, exit_code};
use evictlab_rules::KubeletVersion;
use evictlab_runner::{Interrupt, Repeat, RunRequest, new_run_id};
use evictlab_tools::bisect::{
    BisectResult, Candidate, Outcome, ProbeOutcome, Search, SearchRange, VerdictObserver, ordered, render,
};

use crate::args::backend::{BackendName, ManagedBackend};
use crate::args::candidates;
use crate::args::embedded::EmbeddedArgs;
use crate::args::kind_cluster::NewClusterArgs;
use crate::args::kubelets::ImageArgs;
use crate::args::kubelets::KubeletArg;
use crate::args::output::OutputArgs;
use crate::args::selection::SourceArgs;
use crate::args::target::reject_foreign_managed_options;
use crate::execute::{execute, run_directory};
use crate::failure::{Failure, bad_input, infrastructure};
use crate::kind_context::KindContext;
use crate::output::{print_json_until_interrupt, print_stderr, print_until_interrupt};

/// Maximum number of runs of a kubelet whose verdicts are inconclusive.
const MAX_ATTEMPTS: u32 = 3;

/// Find the first kubelet whose verdict on a case differs
///
/// Searches between a kubelet on which the case is good (passed, fixed) and one on which it is bad
/// (failed, reproduced), whichever is older. Runs up to five kubelets per cluster, in as few
/// clusters as the version skew allows: an API server supports kubelets up to three minors older. A
/// kubelet that is inconclusive three times is skipped and reported.
///
/// Exit status: 0 found; 1 a given end has the other verdict; 2 invalid input; 3 inconclusive
/// kubelets remain in between; 4 error of the harness, a cluster or the host; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab bisect sidecars-are-named --bad v1.31 --good v1.36
  evictlab bisect sidecars-are-named --good v1.36 --bad v1.31 --kubelet v1.31,v1.32,v1.36
  evictlab bisect ./mine.yaml --backend kind --good ./kubelet-1 --bad ./kubelet-9 --kubelet ./kubelet-1,./kubelet-4,./kubelet-9")]
pub(crate) struct Args {
    /// Case: its name, `suite/case`, or its file
    #[arg(value_name = "CASE", add = ArgValueCandidates::new(candidates::case_names))]
    case: String,
    /// Kubelet on which the case is good: a version, a node image, or a binary
    #[arg(long, value_name = "KUBELET", add = ArgValueCandidates::new(candidates::kubelets))]
    good: KubeletArg,
    /// Kubelet on which the case is bad
    #[arg(long, value_name = "KUBELET", add = ArgValueCandidates::new(candidates::kubelets))]
    bad: KubeletArg,
    /// Kubelet to search (repeatable, or separated by commas); binaries of the same version in
    /// order, the oldest first [default: one of every minor; on kind, the versions in
    /// images/images.lock]
    #[arg(long = "kubelet", short = 'k', value_name = "KUBELET", value_delimiter = ',', add = ArgValueCandidates::new(candidates::kubelets))]
    kubelets: Vec<KubeletArg>,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    source: SourceArgs,
    /// Backend that provides the nodes
    #[arg(long, short, value_enum, default_value_t = ManagedBackend::Embedded)]
    pub(crate) backend: ManagedBackend,
    /// Run directory [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    new_cluster: NewClusterArgs,
    /// Print the result as JSON, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Returns the candidate for a kubelet; a release is named by its version.
fn candidate(kubelet: &KubeletArg, version: KubeletVersion) -> Candidate {
    let is_release = matches!(kubelet.spec.source, KubeletSource::Release(_) | KubeletSource::Minor(_));
    let name = if is_release { version.to_string() } else { kubelet.text.clone() };
    Candidate { name, spec: kubelet.spec.clone(), version }
}

impl Args {
    fn case(&self) -> Result<Arc<LoadedCase>, Failure> {
        let selection = Selection { names: vec![self.case.clone()], ..Selection::default() };
        let mut cases = select(&self.source.source(), &selection)?;
        match (cases.pop(), cases.len()) {
            (Some(case), 0) => Ok(case),
            (_, more) => Err(bad_input(format!(
                "`{}` selects {} cases, and a search needs one\nhelp: list their names with `evictlab list {0}`",
                self.case,
                more + 1
            ))),
        }
    }

    /// Returns the kubelets to search, from old to new.
    async fn search_range(&self, context: &SearchContext) -> Result<SearchRange, Failure> {
        let good = context.candidate(&self.good).await?;
        let bad = context.candidate(&self.bad).await?;
        let list = match self.kubelets.is_empty() {
            true => context.all(),
            false => self.kubelets.clone(),
        };
        let mut between = Vec::new();
        for kubelet in &list {
            between.push(context.candidate(kubelet).await?);
        }
        ordered(good, bad, between).map_err(bad_input)
    }
}

/// Image sources of the candidates.
struct SearchContext {
    catalog: ImageCatalog,
    images: BTreeMap<KubeletVersion, String>,
    /// `None` for the embedded backend.
    kind: Option<KindContext>,
}

impl SearchContext {
    async fn new(args: &Args) -> Result<Self, Failure> {
        let kind = match args.backend {
            ManagedBackend::Embedded => None,
            ManagedBackend::Kind => Some(KindContext::connect().await?),
        };
        Ok(Self { catalog: args.images.image_catalog()?, images: args.images.overrides(), kind })
    }

    /// Returns the default candidates: the versions in the image catalog, or one of every modelled
    /// minor.
    fn all(&self) -> Vec<KubeletArg> {
        let release = |version| KubeletSpec { claimed: None, source: KubeletSource::Release(version) };
        let specs = match &self.kind {
            Some(_) => self.catalog.nodes.keys().cloned().map(release).collect(),
            None => evictlab_cluster::every_minor(),
        };
        specs.into_iter().map(|spec| KubeletArg { text: String::new(), spec }).collect()
    }

    async fn candidate(&self, kubelet: &KubeletArg) -> Result<Candidate, Failure> {
        let version = match &self.kind {
            Some(kind) => {
                let resolve = KubeletResolver {
                    docker: &kind.docker,
                    lock: &self.catalog,
                    overrides: &self.images,
                    progress: &|text| print_stderr(text),
                };
                resolve.version(&kubelet.spec).await.map_err(bad_input)?
            }
            None => {
                let modelled =
                    evictlab_cluster::modelled_kubelets(std::slice::from_ref(&kubelet.spec), &self.catalog);
                modelled.map_err(bad_input)?.remove(0).version
            }
        };
        Ok(candidate(kubelet, version))
    }

    /// Returns the kubelet of each candidate, or the reason why it is unavailable.
    async fn kubelets(&self, args: &Args, candidates: &[Candidate]) -> Vec<Result<Kubelet, String>> {
        let mut all: Vec<Result<Kubelet, String>> = Vec::new();
        for candidate in candidates {
            let spec = std::slice::from_ref(&candidate.spec);
            let resolved = match &self.kind {
                Some(kind) => args.images.resolve(&kind.docker, &self.catalog, spec).await,
                None => args.images.modelled(spec, &self.catalog),
            };
            let kubelet = resolved.map(|mut kubelets| kubelets.remove(0)).map_err(|failure| failure.message);
            all.push(kubelet);
        }
        let labels = Kubelet::with_unique_labels(all.iter().flatten().cloned().collect());
        let mut labelled = labels.into_iter();
        all.into_iter().map(|one| one.map(|kubelet| labelled.next().unwrap_or(kubelet))).collect()
    }

    async fn backend(
        &self,
        args: &Args,
        run: &str,
        kubelets: Vec<Kubelet>,
        clock: &Clock,
    ) -> Result<Backend, Failure> {
        let Some(kind) = &self.kind else {
            let (good, bad) = (args.good.text.as_str(), args.bad.text.as_str());
            let words = ["evictlab", "bisect", &args.case, "--good", good, "--bad", bad, "--backend", "kind"];
            let command = shell_quote(&words.map(str::to_owned));
            return args.embedded.backend(kubelets, 1, command, clock).map(Backend::Embedded);
        };
        let clusters = args.new_cluster.clusters(run, 1)?;
        kind.backend(run, kubelets, clusters, KeepPolicy::Never).await.map(Backend::Kind)
    }
}

/// Runs the search. Simulated time requires a paused runtime clock.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let prepared = async {
        reject_foreign_managed_options(args.backend, &args.embedded, &args.new_cluster, &args.images)?;
        let case = args.case()?;
        let context = SearchContext::new(args).await?;
        let range = args.search_range(&context).await?;
        Ok::<_, Failure>((case, context, range))
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let (case, context, range) = prepared?;
    let root = run_directory(args.output_dir.as_deref())?;
    let mut search = Search::new(range);
    let outcome = search
        .run(async |nth, candidates: &[Candidate]| {
            run_on_cluster(args, &case, &context, (nth, candidates), (&root, &interrupt)).await
        })
        .await?;
    let text = render(&search, &outcome, &case.id());
    root.write("bisect.md", &text).map_err(infrastructure)?;
    let report = root.path().join("bisect.md");
    match args.json {
        true => {
            print_json_until_interrupt(
                &BisectResult::new(&search, &outcome, case.id(), &report),
                &interrupt.stage,
            )?;
        }
        false => {
            let text = format!("\n{text}\nReport to paste into an issue: {}", report.display());
            print_until_interrupt(text, &interrupt.stage)?;
        }
    }
    Ok(match outcome {
        Outcome::Found { last, first } if last + 1 == first => exit_code::SUCCESS,
        Outcome::EndMismatch(_) => exit_code::FAILED,
        Outcome::Found { .. } | Outcome::EndInconclusive(_) => exit_code::INCONCLUSIVE,
    }
    .into())
}

/// Runs the case on candidates that share a cluster.
async fn run_on_cluster(
    args: &Args,
    case: &Arc<LoadedCase>,
    context: &SearchContext,
    (nth, candidates): (usize, &[Candidate]),
    (root, interrupt): (&RunDir, &Interrupt),
) -> Result<Vec<ProbeOutcome>, Failure> {
    let clock = BackendName::from(args.backend).clock();
    let run = new_run_id();
    let prepared = async {
        let kubelets = context.kubelets(args, candidates).await;
        let backend = match kubelets.iter().flatten().cloned().collect::<Vec<_>>() {
            available if available.is_empty() => None,
            available => Some(context.backend(args, &run, available, &clock).await?),
        };
        Ok::<_, Failure>((kubelets, backend))
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let (kubelets, backend) = prepared?;
    let observer = VerdictObserver::default();
    if let Some(backend) = backend {
        let names: Vec<&str> = kubelets.iter().flatten().map(|kubelet| kubelet.label.as_str()).collect();
        if !args.json {
            print_until_interrupt(format!("cluster {nth}: {}", names.join(", ")), &interrupt.stage)?;
        }
        let catalog = Arc::new(context.catalog.clone());
        let request = RunRequest {
            repeat: Repeat::UntilConclusive(MAX_ATTEMPTS),
            ..RunRequest::new(run, vec![case.clone()], backend, catalog)
        };
        let run_dir = RunDir::at(&root.artifacts().join(format!("cluster-{nth}"))).map_err(bad_input)?;
        let options = ReportOptions {
            run_dir,
            stdout: (!args.json).then(|| args.output.options()),
            stress: false,
            record: None,
            write_baseline: None,
            interrupts: InterruptStage::default(),
        };
        execute(request, options, vec![observer.report()], clock, interrupt.clone()).await?;
    }
    if interrupt.stop.is_cancelled() {
        return Err(Failure::interrupted());
    }
    Ok(kubelets
        .into_iter()
        .map(|kubelet| match kubelet {
            Ok(kubelet) => observer.outcome(&kubelet.label),
            Err(reason) => ProbeOutcome::Unavailable(reason),
        })
        .collect())
}
