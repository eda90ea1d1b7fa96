//! `evictlab bisect`

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{Backend, KeepPolicy, Kubelet, KubeletSource, KubeletSpec};
use evictlab_report::clock::Clock;
use evictlab_report::text::evictlab_command;
use evictlab_report::{BackendName, RunDir, exit_code};
use evictlab_rules::KubeletVersion;
use evictlab_runner::{Interrupt, new_run_id};
use evictlab_tools::bisect::{
    BisectResult, KubeletCandidate, KubeletSearch, KubeletSearchOutcome, ProbeOutcome, SearchRange, render,
};

use super::bisect_commits;
use super::bisect_run::BisectRun;
use crate::args::backend::ManagedBackend;
use crate::args::bisect::BisectArgs;
use crate::args::kubelets::{KubeletArg, resolver};
use crate::execute::run_directory;
use crate::failure::Failure;
use crate::kind_context::KindContext;
use crate::output::{print_json_until_interrupt, print_until_interrupt, stdout_width};

/// Returns the candidate for a kubelet; a release is named by its version.
fn candidate(kubelet: &KubeletArg, version: KubeletVersion) -> KubeletCandidate {
    let is_release = matches!(kubelet.spec.source, KubeletSource::Release(_) | KubeletSource::Minor(_));
    let name = if is_release { version.to_string() } else { kubelet.text.clone() };
    KubeletCandidate { name, spec: kubelet.spec.clone(), version }
}

/// Image sources of the candidates.
struct SearchContext {
    catalog: ImageCatalog,
    images: BTreeMap<KubeletVersion, String>,
    /// `None` for the embedded backend.
    kind: Option<KindContext>,
}

impl SearchContext {
    async fn new(args: &BisectArgs) -> Result<Self, Failure> {
        let kind = match args.backend() {
            ManagedBackend::Embedded => None,
            ManagedBackend::Kind => Some(KindContext::connect().await?),
        };
        Ok(Self { catalog: args.images.image_catalog()?, images: args.images.overrides(), kind })
    }

    /// Returns the default candidates: the versions in the image catalog, or one of every modelled
    /// minor.
    fn all(&self) -> Vec<KubeletArg> {
        let release = |version| KubeletSpec::from(KubeletSource::Release(version));
        let specs = match &self.kind {
            Some(_) => self.catalog.nodes.keys().cloned().map(release).collect(),
            None => evictlab_cluster::every_minor(),
        };
        specs.into_iter().map(|spec| KubeletArg { text: String::new(), spec }).collect()
    }

    /// Returns the kubelets to search, from old to new.
    async fn search_range(&self, args: &BisectArgs) -> Result<SearchRange, Failure> {
        let [good, bad] = args.ends()?;
        let good = self.candidate("good", &good).await?;
        let bad = self.candidate("bad", &bad).await?;
        let list = if args.kubelets.is_empty() { self.all() } else { args.kubelets.clone() };
        let mut between = Vec::new();
        for kubelet in &list {
            between.push(self.candidate("kubelet", kubelet).await?);
        }
        SearchRange::between(good, bad, between).map_err(Failure::bad_input)
    }

    /// Returns the candidate for a kubelet that an option names.
    async fn candidate(
        &self,
        option: &'static str,
        kubelet: &KubeletArg,
    ) -> Result<KubeletCandidate, Failure> {
        let wrong = |error: &dyn Error| Failure::bad_input(error).of_value(option, &kubelet.text);
        let version = match &self.kind {
            Some(kind) => {
                let resolve = resolver(&kind.docker, &self.catalog, &self.images);
                resolve.version(&kubelet.spec).await.map_err(|error| wrong(&error))?
            }
            None => {
                let modelled =
                    evictlab_cluster::modelled_kubelets(std::slice::from_ref(&kubelet.spec), &self.catalog);
                modelled.map_err(|error| wrong(&error))?.remove(0).version
            }
        };
        Ok(candidate(kubelet, version))
    }

    /// Returns the kubelet of each candidate, or the reason why it is unavailable.
    async fn kubelets(
        &self,
        args: &BisectArgs,
        candidates: &[KubeletCandidate],
    ) -> Vec<Result<Kubelet, String>> {
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
        args: &BisectArgs,
        run: &str,
        kubelets: Vec<Kubelet>,
        clock: &Clock,
    ) -> Result<Backend, Failure> {
        let Some(kind) = &self.kind else {
            let command = evictlab_command(&args.kind_command());
            return args.embedded.backend(kubelets, 1, command, clock).map(Backend::Embedded);
        };
        let clusters = args.new_cluster.clusters(run, 1)?.into();
        kind.backend(run, kubelets, clusters, KeepPolicy::Never).await.map(Backend::Kind)
    }
}

/// Runs the search. Simulated time requires a paused runtime clock.
pub(crate) async fn run(args: &BisectArgs) -> Result<ExitCode, Failure> {
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    match args.commits.repository() {
        Some(repository) => bisect_commits::run(args, repository, interrupt).await,
        None => search_kubelets(args, interrupt).await,
    }
}

async fn search_kubelets(args: &BisectArgs, interrupt: Interrupt) -> Result<ExitCode, Failure> {
    let prepared = async {
        args.reject_foreign_options()?;
        let case = args.case()?;
        let context = SearchContext::new(args).await?;
        let range = context.search_range(args).await?;
        Ok::<_, Failure>((case, context, range))
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let (case, context, range) = prepared?;
    let root = run_directory(args.output_dir.as_deref())?;
    let mut search = KubeletSearch::new(range);
    let outcome = search
        .run(async |nth, candidates: &[KubeletCandidate]| {
            let probe = ClusterProbe { number: nth, candidates, root: &root, interrupt: &interrupt };
            run_on_cluster(args, &case, &context, probe).await
        })
        .await?;
    let text = render(&search, &outcome, &case.id());
    root.write("bisect.md", &text).map_err(Failure::infrastructure)?;
    let report = root.path().join("bisect.md");
    if args.json {
        print_json_until_interrupt(
            &BisectResult::new(&search, &outcome, case.id(), &report),
            &interrupt.stage,
        )?;
    } else {
        // A terminal does not show the bold names of the report as such.
        let text = if stdout_width().is_some() { text.replace("**", "") } else { text };
        let text = format!("\n{text}\nReport to paste into an issue: {}", report.display());
        print_until_interrupt(text, &interrupt.stage)?;
    }
    Ok(match outcome {
        KubeletSearchOutcome::Found { last_old, first_new } if last_old + 1 == first_new => {
            exit_code::SUCCESS
        }
        KubeletSearchOutcome::EndMismatch(_) => exit_code::FAILED,
        KubeletSearchOutcome::Found { .. } | KubeletSearchOutcome::EndInconclusive(_) => {
            exit_code::INCONCLUSIVE
        }
    }
    .into())
}

/// A run of the search, on candidates that share a cluster.
struct ClusterProbe<'a> {
    /// Number of the cluster, from 1.
    number: usize,
    candidates: &'a [KubeletCandidate],
    root: &'a RunDir,
    interrupt: &'a Interrupt,
}

/// Runs the case on candidates that share a cluster.
async fn run_on_cluster(
    args: &BisectArgs,
    case: &Arc<LoadedCase>,
    context: &SearchContext,
    ClusterProbe { number, candidates, root, interrupt }: ClusterProbe<'_>,
) -> Result<Vec<ProbeOutcome>, Failure> {
    let clock = BackendName::from(args.backend()).clock();
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
    let mut verdicts = None;
    if let Some(backend) = backend {
        let names: Vec<&str> = kubelets.iter().flatten().map(|kubelet| kubelet.label.as_str()).collect();
        if !args.json {
            print_until_interrupt(format!("cluster {number}: {}", names.join(", ")), &interrupt.stage)?;
        }
        let run_dir =
            RunDir::at(&root.artifacts().join(format!("cluster-{number}"))).map_err(Failure::bad_input)?;
        let catalog = context.catalog.clone();
        let bisect_run = BisectRun { run, case: case.clone(), backend, catalog, tries: 1, run_dir };
        verdicts = Some(bisect_run.execute(args, clock, interrupt).await?);
    }
    let outcome = |kubelet: Result<Kubelet, String>| match (kubelet, &verdicts) {
        (Ok(kubelet), Some(verdicts)) => verdicts.outcome(&kubelet.label),
        // Unreachable: an available kubelet was run.
        (Ok(_), None) => ProbeOutcome::Inconclusive("not run".to_owned()),
        (Err(reason), _) => ProbeOutcome::Unavailable(reason),
    };
    Ok(kubelets.into_iter().map(outcome).collect())
}
