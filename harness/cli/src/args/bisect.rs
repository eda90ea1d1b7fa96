//! Arguments of `evictlab bisect`.

use std::path::PathBuf;
use std::sync::Arc;

use clap_complete::engine::ArgValueCandidates;
use evictlab_case::LoadedCase;
use evictlab_case::select::{Selection, select};

use crate::args::backend::ManagedBackend;
use crate::args::candidates;
use crate::args::commits::CommitArgs;
use crate::args::embedded::EmbeddedArgs;
use crate::args::kind_cluster::NewClusterArgs;
use crate::args::kubelets::{ImageArgs, KubeletArg};
use crate::args::output::OutputArgs;
use crate::args::selection::SourceArgs;
use crate::args::target::reject_foreign_managed_options;
use crate::args::values::option_args;
use crate::failure::Failure;

/// Find the first kubelet whose verdict on a case differs
///
/// Searches between a kubelet on which the case is good (passed, fixed) and one on which it is bad
/// (failed, reproduced), whichever is older. Runs up to five kubelets per cluster, in as few
/// clusters as the version skew allows: an API server supports kubelets up to three minors older. A
/// kubelet that is inconclusive three times is skipped and reported.
///
/// With `--git`, searches for the commit: builds the commits that git's bisection chooses, replaces
/// the kubelet of one kept worker by each, and prints the commit, its pull request and a
/// confidence. Built kubelets are cached. An interrupted search continues with `--resume`.
///
/// Exit status: 0 found; 1 the verdict on --good or --bad is not as stated; 2 invalid input; 3 only
/// inconclusive or skipped kubelets or commits remain between the two ends; 4 error of the harness,
/// a cluster or the host; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab bisect sidecars-are-named --bad v1.31 --good v1.36
  evictlab bisect sidecars-are-named --good v1.36 --bad v1.31 --kubelet v1.31,v1.32,v1.36
  evictlab bisect ./mine.yaml --backend kind --good ./kubelet-1 --bad ./kubelet-9 --kubelet ./kubelet-1,./kubelet-4,./kubelet-9
  evictlab bisect ./mine.yaml --git ~/kubernetes --good HEAD~400 --bad HEAD --repeat 3")]
pub(crate) struct BisectArgs {
    /// Case: its name, `suite/case`, or its file
    #[arg(value_name = "CASE", add = ArgValueCandidates::new(candidates::case_names))]
    pub(crate) case: String,
    /// Kubelet on which the case is good: a version, a node image, or a binary; with --git, a
    /// revision
    #[arg(long, value_name = "KUBELET", add = ArgValueCandidates::new(candidates::kubelets))]
    pub(crate) good: String,
    /// Kubelet on which the case is bad; with --git, a revision
    #[arg(long, value_name = "KUBELET", add = ArgValueCandidates::new(candidates::kubelets))]
    pub(crate) bad: String,
    /// Kubelet to search (repeatable, or separated by commas); binaries of the same version in
    /// order, the oldest first [default: one of every minor; on kind, the versions in
    /// images/images.lock]
    #[arg(long = "kubelet", short = 'k', value_name = "KUBELET", value_delimiter = ',', add = ArgValueCandidates::new(candidates::kubelets))]
    pub(crate) kubelets: Vec<KubeletArg>,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    #[command(flatten)]
    source: SourceArgs,
    /// Backend that provides the nodes [default: embedded; with --git: kind, since a model runs no
    /// binaries]
    #[arg(long, short, value_enum)]
    backend: Option<ManagedBackend>,
    /// Run directory [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Print the result as JSON, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) commits: CommitArgs,
    #[command(flatten)]
    pub(crate) embedded: EmbeddedArgs,
    #[command(flatten)]
    pub(crate) new_cluster: NewClusterArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl BisectArgs {
    /// Returns the backend: for commits, real kubelets by default.
    pub(crate) fn backend(&self) -> ManagedBackend {
        self.backend.unwrap_or(match self.commits.repository() {
            Some(_) => ManagedBackend::Kind,
            None => ManagedBackend::Embedded,
        })
    }

    /// Returns the case.
    ///
    /// # Errors
    /// The name does not select exactly one case.
    pub(crate) fn case(&self) -> Result<Arc<LoadedCase>, Failure> {
        let selection = Selection { names: vec![self.case.clone()], ..Selection::default() };
        let mut cases = select(&self.source.source(), &selection)?;
        match (cases.pop(), cases.len()) {
            (Some(case), 0) => Ok(case),
            (_, more) => Err(Failure::bad_input(format!(
                "failed to select a case: `{}` selects {} cases, and a search needs one\nhelp: list their names with `evictlab list {0}`",
                self.case,
                more + 1
            ))),
        }
    }

    /// Returns the kubelets on which the case is good and bad.
    ///
    /// # Errors
    /// A text does not name a kubelet.
    pub(crate) fn ends(&self) -> Result<[KubeletArg; 2], Failure> {
        let parse = |option: &'static str, text: &str| {
            let invalid = |error| {
                Failure::bad_input(format!("invalid value '{text}' for '--{option} <KUBELET>': {error}"))
                    .of_option(option)
            };
            text.parse::<KubeletArg>().map_err(invalid)
        };
        Ok([parse("good", &self.good)?, parse("bad", &self.bad)?])
    }

    /// Returns the command that searches the same kubelets or commits on kind.
    pub(crate) fn kind_command(&self) -> Vec<String> {
        // Images and other options of kind are not valid with the model, and those of the model not
        // on kind. The others only concern the output.
        let Self {
            case,
            good,
            bad,
            kubelets,
            source,
            commits,
            images: _,
            backend: _,
            output_dir: _,
            json: _,
            embedded: _,
            new_cluster: _,
            output: _,
        } = self;
        let mut words =
            ["evictlab", "bisect", case, "--good", good, "--bad", bad].map(str::to_owned).to_vec();
        words.extend(kubelets.iter().flat_map(|kubelet| option_args("--kubelet", &kubelet.text)));
        words.extend(source.words());
        if commits.repository().is_some() {
            words.extend(commits.words());
        }
        words.extend(["--backend", "kind"].map(str::to_owned));
        words
    }

    /// Rejects options that only apply to the other backend.
    pub(crate) fn reject_foreign_options(&self) -> Result<(), Failure> {
        reject_foreign_managed_options(self.backend(), &self.embedded, &self.new_cluster, &self.images)
    }
}
