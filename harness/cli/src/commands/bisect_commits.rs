//! `evictlab bisect --git`

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use evictlab_case::LoadedCase;
use evictlab_report::{RunDir, exit_code};
use evictlab_runner::Interrupt;
use evictlab_tools::git_bisect::{
    CommitBisectResult, CommitBuilder, CommitSearch, CommitSearchError, CommitSearchOutcome, CommitSearchRun,
    CommitWorker, Culprit, KubeletCache, Repository, RevisionNames, SearchFile, SearchOptions, Worktree,
    render, short,
};

use super::bisect_backend::BisectBackend;
use crate::args::bisect::BisectArgs;
use crate::execute::run_directory;
use crate::failure::Failure;
use crate::messages::print_stderr;
use crate::output::{print_json_until_interrupt, print_until_interrupt};

impl From<CommitSearchError> for Failure {
    fn from(error: CommitSearchError) -> Self {
        match error {
            CommitSearchError::Interrupted => Self::interrupted(),
            error if error.is_input() => Failure::bad_input(error),
            error => Failure::infrastructure(error),
        }
    }
}

/// Searches the commits of a repository. Simulated time requires a paused runtime clock.
pub(super) async fn run(
    args: &BisectArgs,
    repository: &Path,
    interrupt: Interrupt,
) -> Result<ExitCode, Failure> {
    let Some(prepared) = interrupt.or_none(prepare(args, repository, &interrupt)).await else {
        return Err(Failure::interrupted());
    };
    let (mut run, _lock) = prepared?;
    let print = |text: &str| if args.json { Ok(()) } else { print_until_interrupt(text, &interrupt.stage) };
    let outcome = match run.run(&print).await {
        Ok(outcome) => outcome,
        Err(failure) => {
            let dir = run.root.path().display();
            print_stderr(format!("to continue the search, repeat the command with --resume={dir}"));
            return Err(failure);
        }
    };
    run.builder.worktree.remove().map_err(Failure::infrastructure)?;
    report(args, &run, &outcome)
}

/// Checks the input, and creates or opens the run directory, which is locked as long as the file
/// exists.
async fn prepare<'a>(
    args: &'a BisectArgs,
    dir: &Path,
    interrupt: &'a Interrupt,
) -> Result<(CommitSearchRun<BisectBackend<'a>>, File), Failure> {
    args.reject_foreign_options()?;
    let case = args.case()?;
    let repository = Repository::open(dir).map_err(Failure::bad_input)?;
    let options = search_options(args, &case, &repository)?;
    let file = match args.commits.resume() {
        Some(dir) => SearchFile::resume(dir, &options).map_err(Failure::bad_input)?,
        None => SearchFile::new(options),
    };
    let names = RevisionNames { good: &args.good, bad: &args.bad };
    let search = CommitSearch::new(repository.clone(), file, names).map_err(Failure::bad_input)?;
    let cache = KubeletCache::open().map_err(Failure::infrastructure)?;
    let backend = BisectBackend::new(args, case, interrupt).await?;
    let root = match args.commits.resume() {
        Some(dir) => {
            RunDir::at(&dir.canonicalize().map_err(Failure::infrastructure)?).map_err(Failure::bad_input)?
        }
        None => run_directory(args.output_dir.as_deref())?,
    };
    let lock = SearchFile::lock(root.path()).map_err(CommitSearchError::from)?;
    search.file.write(root.path()).map_err(CommitSearchError::from)?;
    let path = root.path().canonicalize().map_err(Failure::infrastructure)?.join("worktree");
    let builder = CommitBuilder {
        build: args.commits.build()?,
        cache,
        worktree: Worktree::new(repository, path),
        logs: root.artifacts().join("builds"),
        stop: interrupt.stop.clone(),
    };
    let worker = CommitWorker::new(backend, interrupt.stop.clone());
    Ok((CommitSearchRun { search, builder, worker, root, interrupt: interrupt.clone() }, lock))
}

/// Prints and writes the result, and returns the exit status.
fn report(
    args: &BisectArgs,
    run: &CommitSearchRun<BisectBackend<'_>>,
    outcome: &CommitSearchOutcome,
) -> Result<ExitCode, Failure> {
    let status = match outcome {
        CommitSearchOutcome::Found(_) => exit_code::SUCCESS,
        CommitSearchOutcome::EndMismatch(_) => exit_code::FAILED,
        CommitSearchOutcome::OneOf(_)
        | CommitSearchOutcome::EndSkipped(_)
        | CommitSearchOutcome::NoEndBuilds => exit_code::INCONCLUSIVE,
    };
    let culprit = match outcome {
        CommitSearchOutcome::Found(commit) => Some(
            Culprit::find(&run.search.repository, commit, &run.search.new)
                .map_err(Failure::infrastructure)?,
        ),
        _ => None,
    };
    let text = render(&run.search, outcome, culprit.as_ref());
    run.root.write("bisect.md", &text).map_err(Failure::infrastructure)?;
    let report = run.root.path().join("bisect.md");
    if args.json {
        let result = CommitBisectResult::new(&run.search, outcome, culprit, &report);
        print_json_until_interrupt(&result, &run.interrupt.stage)?;
    } else {
        print_until_interrupt(
            format!("\n{text}\nReport to paste into an issue: {}", report.display()),
            &run.interrupt.stage,
        )?
    }
    Ok(status.into())
}

/// Returns the options of the search, with the ids of its ends.
fn search_options(
    args: &BisectArgs,
    case: &LoadedCase,
    repository: &Repository,
) -> Result<SearchOptions, Failure> {
    let commits = &args.commits;
    let build = commits.build()?;
    let good = repository.resolve(&args.good).map_err(Failure::bad_input)?;
    let bad = repository.resolve(&args.bad).map_err(Failure::bad_input)?;
    if good == bad {
        return Err(Failure::bad_input(format!(
            "failed to search: --good and --bad are both {}\nhelp: name one commit on which the case is good and one on which it is bad",
            short(&good)
        )));
    }
    Ok(SearchOptions {
        case: case.id(),
        backend: args.backend().into(),
        repository: repository.path().to_owned(),
        good,
        bad,
        build: build.command,
        kubelet_path: build.kubelet,
        tries: commits.repeat(),
        bad_if: commits.bad_if(),
        first_parent: commits.first_parent(),
    })
}
