//! `evictlab verify`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use evictlab_runner::case::LoadedCase;
use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{Backend as _, Clusters, Kubelet, KubeletSpec};
use evictlab_runner::export::{Machine, recipe};
use evictlab_runner::images::Lock;
use evictlab_runner::report::{Manners, RunDir, Wanted, exit_code};
use evictlab_runner::schedule::{Interrupt, Repeat, Request, new_id};
use evictlab_runner::select::select;
use evictlab_runner::verify::{Conclusion, Setting, Side, Verification, about, facts};
use evictlab_runner::words::quoted;

use super::asked::AskedKubelet;
use super::backend::Backend;
use super::conduct::conduct;
use super::embedded::EmbeddedArgs;
use super::kept::KeepArgs;
use super::kind::Kind;
use super::kubelets::ImageArgs;
use super::new_cluster::NewClusterArgs;
use super::selection::SelectionArgs;
use super::target::only_made;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::print;

/// How often a case is tried that tells nothing.
const TRIES: u32 = 3;

/// Show that a kubelet has a bug and another has not, in one document
///
/// Runs cases on two kubelets side by side in one cluster, and writes verify.md: the verdict in a sentence, what the kubelets say differently, both events,
/// what the node had left over time, where it was seen, and how to repeat it with nothing but kind and kubectl. For an upstream issue, or for a pull
/// request: `--after` takes a kubelet that was built with the patch.
///
/// With `--upstream`, the cases are those on which the issue shows as a known bug; where there is none, all that name it.
///
/// To try a kubelet that was built again, keep the cluster (`--keep`), then name it (`--cluster`): the new binary is put into its worker.
///
/// Exit status: 0 what fails before holds after, and something does; 1 it is not so; 2 the input cannot be used; 3 a case told nothing; 4 the harness, the
/// cluster or the host went wrong; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab verify --upstream kubernetes/kubernetes#124938 --before v1.31.14 --after v1.32.13
  evictlab verify sidecars-are-named --before v1.31.14 --after ./kubelet --keep --name lab
  evictlab verify sidecars-are-named --before v1.31.14 --after ./kubelet --cluster lab")]
pub struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// The kubelet without the change: a version (v1.31.14, or v1.31 for its newest patch at hand), a node image, or a binary (./kubelet)
    #[arg(long, value_name = "KUBELET")]
    before: AskedKubelet,
    /// The kubelet with the change
    #[arg(long, value_name = "KUBELET")]
    after: AskedKubelet,
    #[command(flatten)]
    images: ImageArgs,
    /// Where the nodes come from
    #[arg(long, value_enum, default_value_t = Backend::Kind)]
    pub backend: Backend,
    /// Leave the document and the run's files here [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    new_cluster: NewClusterArgs,
    #[command(flatten)]
    keep: KeepArgs,
}

impl Args {
    fn refuse_strangers(&self) -> Result<(), Failure> {
        only_made(self.backend, &self.embedded, &self.new_cluster, &self.images)?;
        if self.before.text == self.after.text {
            return Err(bad_input(format!(
                "--before and --after are both {}: name the kubelet without the change and the one with it",
                self.before.text
            )));
        }
        if !self.selection.any() {
            return Err(bad_input(
                "nothing to verify: name the cases, or with --upstream the issue that they are about\n  evictlab verify --upstream kubernetes/kubernetes#124938 --before v1.31 --after v1.32",
            ));
        }
        match self.backend {
            Backend::Embedded => self.backend.refuse(Backend::Kind, &self.keep.given()),
            _ => Ok(()),
        }
    }

    fn specs(&self) -> [KubeletSpec; 2] {
        [self.before.spec.clone(), self.after.spec.clone()]
    }

    /// The command that does the same on kind.
    fn again(&self) -> String {
        let mut words = vec!["evictlab".to_owned(), "verify".to_owned()];
        words.extend(self.selection.words());
        for (name, asked) in [("--before", &self.before), ("--after", &self.after)] {
            words.extend([name.to_owned(), asked.text.clone()]);
        }
        quoted(&words)
    }

    /// All that is asked for, and what the document tells beside what is seen. Nothing is made.
    async fn prepared(&self, clock: &Clock) -> Result<(Request, Setting), Failure> {
        self.refuse_strangers()?;
        let selection = self.selection.selection();
        let cases = about(select(&self.selection.source(), &selection)?, &selection.upstream);
        let lock = self.images.lock()?;
        let run = new_id();
        let (backend, kubelets, facts, machine) = match self.backend {
            Backend::Embedded => self.embedded(&lock, clock)?,
            _ => self.kind(&run, &lock).await?,
        };
        let [before, after] = &kubelets[..] else {
            return Err(infrastructure("two kubelets were asked for"));
        };
        let sides = [Side::of(&self.before.text, before), Side::of(&self.after.text, after)];
        let recipes = recipes(&cases, &kubelets, machine.as_ref(), &lock);
        let setting = Setting { sides, facts, recipes, again: self.again() };
        let request = Request {
            run,
            cases,
            backend,
            repeat: Repeat::UntilTold(TRIES),
            timeout: None,
            lock: Arc::new(lock),
            baseline: None,
        };
        Ok((request, setting))
    }

    fn embedded(&self, lock: &Lock, clock: &Clock) -> Result<Prepared, Failure> {
        let kubelets = self.images.modelled(&self.specs(), lock)?;
        let backend = self.embedded.backend(kubelets.clone(), 1, self.again(), clock)?;
        Ok((Box::new(backend), kubelets, vec![], None))
    }

    async fn kind(&self, run: &str, lock: &Lock) -> Result<Prepared, Failure> {
        let clusters = match self.keep.reused() {
            Some(name) => Clusters::Kept(name.to_owned()),
            None => self.new_cluster.clusters(run, 1)?,
        };
        let kind = Kind::at_hand().await?;
        let kubelets = self.images.resolve(&kind.docker, lock, &self.specs()).await?;
        let facts = facts(&kind.docker).await.map_err(infrastructure)?;
        let machine = Machine::of_docker(&kind.docker).await.map_err(infrastructure)?;
        let backend = kind.backend(run, kubelets.clone(), clusters, self.keep.keep()).await?;
        if backend.plans().len() > 1 {
            return Err(bad_input(format!(
                "{} and {} cannot share a cluster: an API server takes kubelets up to three minors older than itself\nTo find where between them a verdict changes: evictlab bisect.",
                self.before.text, self.after.text
            )));
        }
        Ok((Box::new(backend), kubelets, facts, Some(machine)))
    }
}

/// Where the nodes come from, both kubelets, what is known of the host, and what recipes need to know of it.
type Prepared =
    (Box<dyn evictlab_runner::cluster::Backend>, Vec<Kubelet>, Vec<(String, String)>, Option<Machine>);

/// How each case is repeated by hand, or why it cannot be.
fn recipes(
    cases: &[Arc<LoadedCase>],
    kubelets: &[Kubelet],
    machine: Option<&Machine>,
    lock: &Lock,
) -> BTreeMap<String, Result<evictlab_runner::export::Recipe, String>> {
    let Some(machine) = machine else { return BTreeMap::new() };
    let of = |case: &Arc<LoadedCase>| {
        let recipe = recipe(case, kubelets, machine, &|image| lock.case_image(image));
        (case.id(), recipe.map_err(|error| error.to_string()))
    };
    cases.iter().map(of).collect()
}

/// Runs the cases on both kubelets and writes the document. Where they have a model's time, the runtime's clock must be paused.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Before anything is made.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let clock = args.backend.clock();
    let Some(prepared) = interrupt.or_none(args.prepared(&clock)).await else {
        return Err(Failure::interrupted());
    };
    let (request, setting) = prepared?;
    let run_dir = RunDir::wanted(args.output_dir.as_deref()).map_err(bad_input)?;
    let wanted = Wanted {
        run_dir: run_dir.clone(),
        stdout: Some(Manners::of_stdout()),
        stress: false,
        record: None,
        write_baseline: None,
    };
    let (verification, concluded) = Verification::new(run_dir.clone(), setting);
    let finished = conduct(request, wanted, vec![Box::new(verification)], clock, interrupt).await?;
    let concluded = concluded.all();
    for (_, sentence) in &concluded {
        print(sentence)?;
    }
    print(format!("To be pasted: {}", run_dir.path().join("verify.md").display()))?;
    let is = |wanted: fn(&Conclusion) -> bool| concluded.iter().any(|(conclusion, _)| wanted(conclusion));
    Ok(match finished.exit_code {
        code @ (exit_code::INTERRUPTED | exit_code::INFRASTRUCTURE) => code,
        _ if is(|conclusion| matches!(conclusion, Conclusion::Untold(_))) => exit_code::INCONCLUSIVE,
        _ if is(|conclusion| matches!(conclusion, Conclusion::Broken | Conclusion::Bad(_))) => {
            exit_code::FAILED
        }
        _ if is(|conclusion| matches!(conclusion, Conclusion::Mended(_))) => exit_code::SUCCESS,
        _ => exit_code::FAILED,
    }
    .into())
}
