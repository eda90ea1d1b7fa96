//! `evictlab verify`

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap_complete::engine::ArgValueCandidates;
use evictlab_case::LoadedCase;
use evictlab_case::select::select;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{Backend, ClusterSource, Kubelet, KubeletSpec, skew_policy};
use evictlab_report::clock::Clock;
use evictlab_report::text::evictlab_command;
use evictlab_report::{
    BackendName, CaseId, InterruptStage, KeptEvidence, Merge, Report, ReportOptions, RunDir, exit_code,
    replay_recorded,
};
use evictlab_runner::{Interrupt, Repeat, RunRequest, new_run_id};
use evictlab_tools::export::{HostInfo, Recipe, recipe};
use evictlab_tools::verify::{
    CaseConclusion, ComparedKubelet, Conclusion, ReportContext, VerifyReport, VerifyResult, environment,
    relevant_cases,
};

use super::report_merge::write_merged;
use crate::args::backend::{ManagedBackend, reject_foreign_options};
use crate::args::candidates;
use crate::args::embedded::EmbeddedArgs;
use crate::args::kind_cluster::{KeepArgs, NewClusterArgs};
use crate::args::kubelets::{ImageArgs, KubeletArg, of_first_not_modelled};
use crate::args::output::OutputArgs;
use crate::args::selection::SelectionArgs;
use crate::args::target::reject_foreign_managed_options;
use crate::execute::{MAX_ATTEMPTS, execute, print_failures, run_directory};
use crate::failure::Failure;
use crate::kind_context::KindContext;
use crate::output::{print_json_until_interrupt, print_until_interrupt};

/// Compare cases on two kubelets, and document whether a bug is fixed
///
/// Runs the cases on two kubelets side by side in one cluster and writes verify.md: one sentence
/// that states whether the bug is fixed, the differences between the two kubelets, their events,
/// timelines of the nodes, the environment, and the steps to reproduce with only kind and kubectl.
/// The document is for an upstream issue or pull request; `--after ./kubelet` takes a kubelet built
/// with the patch.
///
/// With `--upstream`, runs the cases for which the issue is a known bug, or else all cases that
/// name it.
///
/// To test a rebuilt kubelet, keep the cluster (`--keep`) and reuse it (`--cluster`): the new
/// binary is installed on its worker.
///
/// Exit status: 0 a case fails before and passes after, and no case is worse; 1 otherwise; 2
/// invalid input; 3 a case is inconclusive; 4 error of the harness, the cluster or the host; 130
/// interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab verify --upstream kubernetes/kubernetes#124938 --before v1.31.14 --after v1.32.11
  evictlab verify sidecars-are-named --before v1.31.14 --after ./kubelet --backend kind --keep --name lab
  evictlab verify sidecars-are-named --before v1.31.14 --after ./kubelet --backend kind --cluster lab
  evictlab verify message --before v1.31 --after v1.32 --runs results/shard-*")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Kubelet without the change: a version (v1.31.14, or v1.31 for the newest known patch), a
    /// node image, or a binary (./kubelet)
    #[arg(long, value_name = "KUBELET", add = ArgValueCandidates::new(candidates::kubelets))]
    before: KubeletArg,
    /// Kubelet with the change
    #[arg(long, value_name = "KUBELET", add = ArgValueCandidates::new(candidates::kubelets))]
    after: KubeletArg,
    #[command(flatten)]
    images: ImageArgs,
    /// Compare the kubelets in these recorded runs instead of running the cases; several runs, such
    /// as shards, are merged
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "backend")]
    runs: Vec<PathBuf>,
    /// Backend that provides the nodes
    #[arg(long, short, value_enum, default_value_t = ManagedBackend::Embedded)]
    pub(crate) backend: ManagedBackend,
    /// Run directory, with the document [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    new_cluster: NewClusterArgs,
    #[command(flatten)]
    keep: KeepArgs,
    /// Print the conclusions as JSON, and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        reject_foreign_managed_options(self.backend, &self.embedded, &self.new_cluster, &self.images)?;
        if self.before.text == self.after.text {
            return Err(self.same_kubelet(&self.before.text));
        }
        if !self.selection.is_restricted() && self.runs.is_empty() {
            return Err(Failure::bad_input(
                "failed to select cases: none is named\nhelp: name the cases, or their issue: evictlab verify --upstream kubernetes/kubernetes#124938 --before v1.31 --after v1.32",
            ));
        }
        let backend = BackendName::from(self.backend);
        reject_foreign_options(backend, BackendName::Kind, &self.keep.stated_options())
    }

    /// Returns the error that both arguments name this kubelet.
    fn same_kubelet(&self, kubelet: &str) -> Failure {
        let stated = if self.before.text == self.after.text {
            String::new()
        } else {
            format!(" ({} and {})", self.before.text, self.after.text)
        };
        Failure::bad_input(format!(
            "failed to compare kubelets: --before and --after are both {kubelet}{stated}\nhelp: name the kubelet without the change and the kubelet with it"
        ))
    }

    fn specs(&self) -> [KubeletSpec; 2] {
        [self.before.spec.clone(), self.after.spec.clone()]
    }

    /// Returns the command that does the same on kind.
    fn kind_command(&self) -> String {
        // Images and other options of kind are not valid with the model, and those of the model not
        // on kind. The others only concern the output.
        let Self {
            selection,
            before,
            after,
            images: _,
            runs: _,
            backend: _,
            output_dir: _,
            embedded: _,
            new_cluster: _,
            keep: _,
            json: _,
            output: _,
        } = self;
        let mut words = selection.command("verify");
        for (name, kubelet) in [("--before", before), ("--after", after)] {
            words.extend([name.to_owned(), kubelet.text.clone()]);
        }
        words.extend(["--backend".to_owned(), "kind".to_owned()]);
        evictlab_command(&words)
    }

    /// Returns the selected cases; with an issue, those that it is about.
    fn cases(&self) -> Result<Vec<Arc<LoadedCase>>, Failure> {
        let selection = self.selection.selection();
        Ok(relevant_cases(select(&self.selection.source(), &selection)?, &selection.upstream))
    }

    /// Returns the request and the context of the document. Creates no resources.
    async fn prepare(&self, clock: &Clock) -> Result<(RunRequest, ReportContext), Failure> {
        self.check()?;
        let cases = self.cases()?;
        let catalog = self.images.image_catalog()?;
        let run = new_run_id();
        let Prepared { backend, kubelets, environment, host } = match self.backend {
            ManagedBackend::Embedded => self.prepare_embedded(&catalog, clock)?,
            ManagedBackend::Kind => self.prepare_kind(&run, &catalog).await?,
        };
        let [before, after] = &kubelets[..] else {
            return Err(Failure::infrastructure("failed to resolve the kubelets: expected two"));
        };
        if is_same(before, after) {
            return Err(self.same_kubelet(&before.version.to_string()));
        }
        let sides =
            [ComparedKubelet::new(&self.before.text, before), ComparedKubelet::new(&self.after.text, after)];
        let recipes = recipes(&cases, &kubelets, host.as_ref(), &catalog);
        let context = ReportContext { sides, environment, recipes, repro_command: self.kind_command() };
        let repeat = Repeat::UntilConclusive { verdicts: 1, attempts: MAX_ATTEMPTS };
        let request = RunRequest { repeat, ..RunRequest::new(run, cases, backend, Arc::new(catalog)) };
        Ok((request, context))
    }

    fn prepare_embedded(&self, catalog: &ImageCatalog, clock: &Clock) -> Result<Prepared, Failure> {
        let kubelets = self.images.modelled(&self.specs(), catalog).map_err(|failure| {
            let stated = [("before", &self.before), ("after", &self.after)];
            of_first_not_modelled(failure, stated.into_iter(), catalog)
        })?;
        let backend = self.embedded.backend(kubelets.clone(), 1, self.kind_command(), clock)?;
        let backend = Backend::Embedded(backend);
        Ok(Prepared { backend, kubelets, environment: vec![], host: None })
    }

    async fn prepare_kind(&self, run: &str, catalog: &ImageCatalog) -> Result<Prepared, Failure> {
        let clusters = match self.keep.reused() {
            Some(name) => ClusterSource::Kept(name.to_owned()),
            None => self.new_cluster.clusters(run, 1)?.into(),
        };
        let kind = KindContext::connect().await?;
        let kubelets = self.images.resolve(&kind.docker, catalog, &self.specs()).await?;
        let environment = environment(&kind.docker).await.map_err(Failure::infrastructure)?;
        let host = HostInfo::of_docker(&kind.docker).await.map_err(Failure::infrastructure)?;
        let backend = Backend::Kind(kind.backend(run, kubelets.clone(), clusters, self.keep.keep()).await?);
        if backend.plans().len() > 1 {
            return Err(Failure::bad_input(format!(
                "failed to create a cluster with {} and {}: {}\nhelp: find the version where the verdict changes with `evictlab bisect`",
                self.before.text,
                self.after.text,
                skew_policy()
            )));
        }
        Ok(Prepared { backend, kubelets, environment, host: Some(host) })
    }
}

/// A prepared backend.
struct Prepared {
    backend: Backend,
    /// The kubelets before and after.
    kubelets: Vec<Kubelet>,
    /// Rows of the environment table.
    environment: Vec<(String, String)>,
    /// The Docker host; `None` for the embedded backend.
    host: Option<HostInfo>,
}

/// Returns the steps to reproduce each case with kind and kubectl, or why that is not possible.
fn recipes(
    cases: &[Arc<LoadedCase>],
    kubelets: &[Kubelet],
    host: Option<&HostInfo>,
    catalog: &ImageCatalog,
) -> BTreeMap<String, Result<Recipe, String>> {
    let Some(host) = host else { return BTreeMap::new() };
    let recipe_by_id = |case: &Arc<LoadedCase>| {
        let recipe = recipe(case, kubelets, host, &|image| catalog.case_image(image));
        (case.id(), recipe.map_err(|error| error.to_string()))
    };
    cases.iter().map(recipe_by_id).collect()
}

/// Runs the cases on both kubelets and writes the document. Simulated time requires a paused
/// runtime clock.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if !args.runs.is_empty() {
        return verify_recorded(args);
    }
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let clock = BackendName::from(args.backend).clock();
    let Some(prepared) = interrupt.or_none(args.prepare(&clock)).await else {
        return Err(Failure::interrupted());
    };
    let (request, context) = prepared?;
    let run_dir = run_directory(args.output_dir.as_deref())?;
    let options = ReportOptions {
        run_dir: run_dir.clone(),
        stdout: (!args.json).then(|| args.output.options()),
        stress: false,
        evidence: KeptEvidence::All,
        record: None,
        write_baseline: None,
        interrupts: InterruptStage::default(),
    };
    let (report, conclusions) = VerifyReport::new(run_dir.clone(), context);
    let interrupts = interrupt.stage.clone();
    let finished = execute(request, options, vec![Box::new(report)], clock, interrupt).await?;
    let conclusions = conclusions.all();
    if !args.json {
        // The summary of the run is above.
        print_until_interrupt("", &interrupts)?;
    }
    print_conclusions(args, &conclusions, &run_dir, &interrupts)?;
    Ok(exit_code_of(finished.exit_code, &conclusions).into())
}

/// Returns whether two arguments were resolved to one kubelet.
fn is_same(before: &Kubelet, after: &Kubelet) -> bool {
    let identity =
        |kubelet: &Kubelet| (kubelet.version.clone(), kubelet.image.clone(), kubelet.binary.clone());
    identity(before) == identity(after)
}

/// Merges recorded runs, and writes the document about them.
fn verify_recorded(args: &Args) -> Result<ExitCode, Failure> {
    args.check()?;
    let merge = Merge::read(&args.runs, None).map_err(Failure::bad_input)?;
    let labels = merge.kubelets();
    let side = |kubelet: &KubeletArg| {
        ComparedKubelet::recorded(&kubelet.text, &labels).ok_or_else(|| {
            let (text, labels) = (&kubelet.text, labels.join(", "));
            Failure::bad_input(format!(
                "failed to find kubelet {text} in the runs\nhelp: their kubelets are {labels}"
            ))
        })
    };
    let sides = [side(&args.before)?, side(&args.after)?];
    if sides[0].label == sides[1].label {
        return Err(args.same_kubelet(&sides[0].label));
    }
    let selected = if args.selection.is_restricted() {
        Some(args.cases()?.iter().map(|case| case.id()).collect::<BTreeSet<String>>())
    } else {
        None
    };
    let run_dir = run_directory(args.output_dir.as_deref())?;
    let compared: Vec<String> = sides.iter().map(|side| side.label.clone()).collect();
    let cases = selected.unwrap_or_else(|| merge.cases_not_skipped_on(&compared));
    write_merged(merge, &run_dir, None, vec![])?;
    let context = ReportContext {
        sides,
        environment: vec![],
        recipes: BTreeMap::new(),
        repro_command: args.kind_command(),
    };
    let (report, conclusions) = VerifyReport::new(run_dir.clone(), context);
    let needs_evidence = |id: &CaseId| compared.contains(&id.kubelet) && cases.contains(&id.suite_and_case());
    let report: Box<dyn Report> = Box::new(report.of_cases(Some(cases.clone())));
    let finished =
        replay_recorded(run_dir.path(), needs_evidence, vec![report]).map_err(Failure::infrastructure)?;
    print_failures(&finished);
    let conclusions = conclusions.all();
    print_conclusions(args, &conclusions, &run_dir, &InterruptStage::default())?;
    // Other cases of the runs do not matter, but the document does.
    let run = if finished.failures.is_empty() { exit_code::SUCCESS } else { exit_code::INFRASTRUCTURE };
    Ok(exit_code_of(run, &conclusions).into())
}

/// Returns the exit status for the conclusions of a run with this exit status.
fn exit_code_of(run: u8, conclusions: &[CaseConclusion]) -> u8 {
    let any = |is: fn(&Conclusion) -> bool| conclusions.iter().any(|of_case| is(&of_case.conclusion));
    match run {
        code @ (exit_code::INTERRUPTED | exit_code::INFRASTRUCTURE) => code,
        _ if any(|conclusion| matches!(conclusion, Conclusion::Inconclusive(_))) => exit_code::INCONCLUSIVE,
        _ if any(|conclusion| matches!(conclusion, Conclusion::Regressed | Conclusion::Bad(_))) => {
            exit_code::FAILED
        }
        _ if any(|conclusion| matches!(conclusion, Conclusion::Fixed(_))) => exit_code::SUCCESS,
        _ => exit_code::FAILED,
    }
}

/// Prints the conclusions, and the path of the document.
fn print_conclusions(
    args: &Args,
    conclusions: &[CaseConclusion],
    run_dir: &RunDir,
    interrupts: &InterruptStage,
) -> Result<(), Failure> {
    let document = run_dir.path().join("verify.md");
    if !args.json {
        let sentences: Vec<&str> = conclusions.iter().map(|of_case| of_case.sentence.as_str()).collect();
        let path = document.display();
        let text = format!("{}\nReport to paste into an issue: {path}", sentences.join("\n"));
        return print_until_interrupt(text, interrupts);
    }
    let result = VerifyResult { conclusions: conclusions.to_vec(), report: document };
    print_json_until_interrupt(&result, interrupts)
}
