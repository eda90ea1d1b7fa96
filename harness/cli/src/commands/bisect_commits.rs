//! `evictlab bisect --git`

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_case::LoadedCase;
use evictlab_cluster::Kubelet;
use evictlab_cluster::images::kubelet_version;
use evictlab_report::{RunDir, exit_code};
use evictlab_rules::KubeletVersion;
use evictlab_runner::Interrupt;
use evictlab_tools::git_bisect::{
    BuildLog, BuildOutcome, Commit, CommitBisectResult, CommitResult, CommitSearch, Culprit, KubeletCache,
    Repository, SearchFile, SearchOptions, SearchOutcome, Step, TestedCommit, Tries, Worktree, progress,
    render, short,
};

use super::bisect_worker::CommitWorker;
use crate::args::backend::ManagedBackend;
use crate::args::bisect::BisectArgs;
use crate::execute::run_directory;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::{print_json_until_interrupt, print_stderr, print_until_interrupt};

/// Searches the commits of a repository. Simulated time requires a paused runtime clock.
pub(super) async fn run(
    args: &BisectArgs,
    repository: &Path,
    interrupt: Interrupt,
) -> Result<ExitCode, Failure> {
    let Some(prepared) = interrupt.or_none(SearchRun::prepare(args, repository, &interrupt)).await else {
        return Err(Failure::interrupted());
    };
    let mut run = prepared?;
    let searched = run.search().await;
    let deleted = run.worker.delete_cluster(&mut run.search.file).await;
    run.search.file.write(run.root.path()).map_err(infrastructure)?;
    let outcome = match (searched, deleted) {
        (Ok(outcome), Ok(())) => outcome,
        (Err(failure), _) | (_, Err(failure)) => {
            let dir = run.root.path().display();
            print_stderr(format!("to continue the search, repeat the command with --resume={dir}"));
            return Err(failure);
        }
    };
    run.worktree.remove().map_err(infrastructure)?;
    run.report(&outcome)
}

/// A search with everything that it needs.
struct SearchRun<'a> {
    args: &'a BisectArgs,
    interrupt: &'a Interrupt,
    search: CommitSearch,
    root: RunDir,
    /// Locked as long as the search runs.
    _lock: File,
    worktree: Worktree,
    cache: KubeletCache,
    worker: CommitWorker<'a>,
}

impl<'a> SearchRun<'a> {
    /// Checks the input, and creates or opens the run directory.
    async fn prepare(args: &'a BisectArgs, dir: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        args.reject_foreign_options()?;
        let case = args.case()?;
        let repository = Repository::open(dir).map_err(bad_input)?;
        let options = search_options(args, &case, &repository)?;
        let file = match args.commits.resume() {
            Some(dir) => SearchFile::resume(dir, &options).map_err(bad_input)?,
            None => SearchFile::new(options),
        };
        let names = (args.good.as_str(), args.bad.as_str());
        let search = CommitSearch::new(repository.clone(), file, names).map_err(bad_input)?;
        let cache = KubeletCache::open().map_err(infrastructure)?;
        let worker = CommitWorker::new(args, case, interrupt).await?;
        let root = match args.commits.resume() {
            Some(dir) => RunDir::at(&dir.canonicalize().map_err(infrastructure)?).map_err(bad_input)?,
            None => run_directory(args.output_dir.as_deref())?,
        };
        let lock = lock(root.path())?;
        search.file.write(root.path()).map_err(infrastructure)?;
        let path = root.path().canonicalize().map_err(infrastructure)?.join("worktree");
        let worktree = Worktree::new(repository, path);
        Ok(Self { args, interrupt, search, root, _lock: lock, worktree, cache, worker })
    }

    /// Tests commits until the search ends, and writes the file after each.
    async fn search(&mut self) -> Result<SearchOutcome, Failure> {
        loop {
            let (id, left) = match self.search.next().map_err(infrastructure)? {
                Step::Ended(SearchOutcome::NoEndBuilds) => return Err(self.no_end_builds()),
                Step::Ended(outcome) => return Ok(outcome),
                Step::Test { commit, left } => (commit, left),
            };
            let commit = self.search.repository.commit(&id).map_err(infrastructure)?;
            self.print(&progress(&self.search, &commit, left))?;
            let (version, result) = self.test(&commit).await?;
            if let CommitResult::NotBuilt(reason) | CommitResult::Inconclusive(reason) = &result {
                self.print(&format!("skipped {}: {reason}", short(&id)))?;
            }
            let version = version.map(|version| version.to_string());
            let tested = TestedCommit { commit: id, subject: commit.subject, version, result };
            self.search.file.tested.push(tested);
            self.search.file.write(self.root.path()).map_err(infrastructure)?;
        }
    }

    /// Builds a commit, unless its kubelet is in the cache, and judges its kubelet.
    async fn test(&mut self, commit: &Commit) -> Result<(Option<KubeletVersion>, CommitResult), Failure> {
        let path = match self.kubelet(commit).await? {
            Ok(path) => path,
            Err(reason) => return Ok((None, CommitResult::NotBuilt(reason))),
        };
        let version = match kubelet_version(&path) {
            Ok(version) => version,
            Err(error) => return Ok((None, CommitResult::NotBuilt(first_line(&error)))),
        };
        // A node image may be pulled.
        let resolved = self.interrupt.or_none(self.worker.kubelet(&path, &version)).await;
        let kubelet = match resolved.ok_or_else(Failure::interrupted)? {
            Ok(kubelet) => kubelet,
            Err(failure) => {
                return Ok((Some(version), CommitResult::Inconclusive(first_line(&failure.message))));
            }
        };
        let result = self.judge(commit, kubelet).await?;
        Ok((Some(version), result))
    }

    /// Returns the kubelet of a commit, or the reason why it does not build.
    async fn kubelet(&mut self, commit: &Commit) -> Result<Result<PathBuf, String>, Failure> {
        let build = self.args.commits.build()?;
        if let Some(path) = self.cache.get(&commit.id, &build) {
            self.print("the kubelet was built before")?;
            return Ok(Ok(path));
        }
        let logs = self.root.artifacts().join("builds");
        fs::create_dir_all(&logs).map_err(infrastructure)?;
        let log = logs.join(format!("{}.log", short(&commit.id)));
        self.print(&format!("building, output in {}", log.display()))?;
        self.search.file.builds += 1;
        let (worktree, id, stop) = (self.worktree.clone(), commit.id.clone(), self.interrupt.stop.clone());
        let (cache, in_worktree) = (self.cache.clone(), build.clone());
        let built = tokio::task::spawn_blocking(move || {
            let failed = |error: std::io::Error| {
                infrastructure(format!("failed to run the build of {}: {error}", short(&id)))
            };
            let Some(log) = BuildLog::open(&log, &stop).map_err(failed)? else {
                return Err(Failure::interrupted());
            };
            worktree.check_out(&id).map_err(infrastructure)?;
            let built = build.run(worktree.path(), log, &stop).map_err(failed)?;
            match built {
                BuildOutcome::Built(path) => {
                    cache.put(&id, &in_worktree, &path).map(Ok).map_err(infrastructure)
                }
                BuildOutcome::NotBuilt(reason) => Ok(Err(reason)),
                BuildOutcome::Interrupted => Err(Failure::interrupted()),
            }
        });
        built.await.map_err(infrastructure)?
    }

    /// Runs the case on the kubelet of a commit.
    async fn judge(&mut self, commit: &Commit, kubelet: Kubelet) -> Result<CommitResult, Failure> {
        let dir = self.root.artifacts().join(short(&commit.id));
        let observer = self.worker.run(&kubelet, &dir, &mut self.search.file).await;
        // The cluster of the worker may be another one.
        self.search.file.write(self.root.path()).map_err(infrastructure)?;
        let observer = observer?;
        let tries = Tries::count(&observer.standings(&kubelet.label));
        let options = &self.search.file.options;
        Ok(match tries.standing(options.tries, options.bad_if) {
            Some(standing) => CommitResult::Judged { standing, tries },
            None => CommitResult::Inconclusive(observer.inconclusive_reason(&kubelet.label)),
        })
    }

    fn no_end_builds(&self) -> Failure {
        let reason = self.search.file.tested.iter().find_map(|tested| match &tested.result {
            CommitResult::NotBuilt(reason) => Some(reason.as_str()),
            _ => None,
        });
        let logs = self.root.artifacts().join("builds");
        bad_input(format!(
            "failed to build {} and {}: {}\nhelp: check --build and --kubelet-path; the output of the builds is in {}",
            short(&self.search.old),
            short(&self.search.new),
            reason.unwrap_or_default(),
            logs.display()
        ))
    }

    /// Prints and writes the result, and returns the exit status.
    fn report(&self, outcome: &SearchOutcome) -> Result<ExitCode, Failure> {
        let status = match outcome {
            SearchOutcome::Found(_) => exit_code::SUCCESS,
            SearchOutcome::EndMismatch(_) => exit_code::FAILED,
            SearchOutcome::OneOf(_) | SearchOutcome::EndSkipped(_) => exit_code::INCONCLUSIVE,
            SearchOutcome::NoEndBuilds => return Err(self.no_end_builds()),
        };
        let culprit = match outcome {
            SearchOutcome::Found(commit) => Some(
                Culprit::find(&self.search.repository, commit, &self.search.new).map_err(infrastructure)?,
            ),
            _ => None,
        };
        let text = render(&self.search, outcome, culprit.as_ref());
        self.root.write("bisect.md", &text).map_err(infrastructure)?;
        let report = self.root.path().join("bisect.md");
        match self.args.json {
            true => {
                let result = CommitBisectResult::new(&self.search, outcome, culprit, &report);
                print_json_until_interrupt(&result, &self.interrupt.stage)?;
            }
            false => print_until_interrupt(
                format!("\n{text}\nReport to paste into an issue: {}", report.display()),
                &self.interrupt.stage,
            )?,
        }
        Ok(status.into())
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        if self.args.json { Ok(()) } else { print_until_interrupt(text, &self.interrupt.stage) }
    }
}

/// Returns the options of the search, with the ids of its ends.
fn search_options(
    args: &BisectArgs,
    case: &LoadedCase,
    repository: &Repository,
) -> Result<SearchOptions, Failure> {
    let commits = &args.commits;
    let build = commits.build()?;
    let good = repository.resolve(&args.good).map_err(bad_input)?;
    let bad = repository.resolve(&args.bad).map_err(bad_input)?;
    if good == bad {
        return Err(bad_input(format!(
            "failed to search: --good and --bad are both {}\nhelp: name one commit on which the case is good and one on which it is bad",
            short(&good)
        )));
    }
    Ok(SearchOptions {
        case: case.id(),
        backend: match args.backend() {
            ManagedBackend::Embedded => "embedded".to_owned(),
            ManagedBackend::Kind => "kind".to_owned(),
        },
        repository: repository.path().to_owned(),
        good,
        bad,
        build: build.command,
        kubelet_path: build.kubelet,
        tries: commits.tries(),
        bad_if: commits.bad_if(),
        first_parent: commits.first_parent(),
    })
}

/// Locks a run directory for this process.
fn lock(dir: &Path) -> Result<File, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| infrastructure(format!("failed to lock {}: {error}", dir.display()));
    let lock = File::open(dir).map_err(|error| failed(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(bad_input(format!(
            "failed to resume {}: another process continues its search\nhelp: wait for it, or start another search without --resume",
            dir.display()
        ))),
        Err(fs::TryLockError::Error(error)) => Err(failed(&error)),
    }
}

fn first_line(error: &dyn ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
