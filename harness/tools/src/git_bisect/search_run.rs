//! The execution of a search: builds and judges commits until it ends.

use evictlab_cluster::Kubelet;
use evictlab_cluster::images::kubelet_version;
use evictlab_report::RunDir;
use evictlab_report::text::first_line;
use evictlab_rules::KubeletVersion;
use evictlab_runner::Interrupt;

use super::commit_build::BuildOutcome;
use super::commit_builder::CommitBuilder;
use super::commit_worker::{CommitBackend, CommitWorker};
use super::error::CommitSearchError;
use super::render::progress;
use super::repository::{Commit, short};
use super::search::{CommitSearch, CommitSearchOutcome, CommitSearchStep};
use super::search_file::{CommitResult, TestedCommit};
use super::tries::Tries;

/// A search with everything that it needs.
pub struct CommitSearchRun<B> {
    /// The search and its tested commits.
    pub search: CommitSearch,
    /// Builds the commits.
    pub builder: CommitBuilder,
    /// Runs their kubelets.
    pub worker: CommitWorker<B>,
    /// Directory of the search.
    pub root: RunDir,
    /// Ends the search.
    pub interrupt: Interrupt,
}

impl<B: CommitBackend> CommitSearchRun<B> {
    /// Tests commits until the search ends, then deletes its cluster. The file of the search
    /// contains every result, also after an error. `print` receives lines about the progress.
    ///
    /// # Errors
    /// Neither end builds, a step fails, or the search was interrupted.
    pub async fn run(
        &mut self,
        print: &dyn Fn(&str) -> Result<(), B::Error>,
    ) -> Result<CommitSearchOutcome, B::Error> {
        let searched = self.test_commits(print).await;
        let deleted = self.worker.backend().delete(&mut self.search.file.cluster).await;
        self.write_file()?;
        let outcome = searched?;
        deleted?;
        Ok(outcome)
    }

    async fn test_commits(
        &mut self,
        print: &dyn Fn(&str) -> Result<(), B::Error>,
    ) -> Result<CommitSearchOutcome, B::Error> {
        loop {
            let (id, left) = match self.search.next_step().map_err(CommitSearchError::Git)? {
                CommitSearchStep::Done(CommitSearchOutcome::NoEndBuilds) => {
                    return Err(self.no_end_builds().into());
                }
                CommitSearchStep::Done(outcome) => return Ok(outcome),
                CommitSearchStep::Test { commit, left } => (commit, left),
            };
            let commit = self.search.repository.commit(&id).map_err(CommitSearchError::Git)?;
            print(&progress(&self.search, &commit, left))?;
            let (version, result) = self.test(&commit, print).await?;
            if let CommitResult::NotBuilt(reason) | CommitResult::Inconclusive(reason) = &result {
                print(&format!("skipped {}: {reason}", short(&id)))?;
            }
            let version = version.map(|version| version.to_string());
            let tested = TestedCommit { commit: id, subject: commit.subject, version, result };
            self.search.file.tested.push(tested);
            self.write_file()?;
        }
    }

    /// Builds a commit, unless its kubelet is in the cache, and judges its kubelet.
    async fn test(
        &mut self,
        commit: &Commit,
        print: &dyn Fn(&str) -> Result<(), B::Error>,
    ) -> Result<(Option<KubeletVersion>, CommitResult), B::Error> {
        let path = match self.build(commit, print).await? {
            BuildOutcome::Built(path) => path,
            BuildOutcome::NotBuilt(reason) => return Ok((None, CommitResult::NotBuilt(reason))),
            BuildOutcome::Interrupted => return Err(CommitSearchError::Interrupted.into()),
        };
        let version = match kubelet_version(&path) {
            Ok(version) => version,
            Err(error) => {
                let reason = first_line(&error.to_string()).to_owned();
                return Ok((None, CommitResult::NotBuilt(reason)));
            }
        };
        // A node image may be pulled.
        let resolved = self.interrupt.or_none(self.worker.backend().kubelet(&path, &version)).await;
        let result = match resolved.ok_or(CommitSearchError::Interrupted)? {
            Ok(kubelet) => self.judge(commit, &kubelet).await?,
            Err(reason) => CommitResult::Inconclusive(first_line(&reason).to_owned()),
        };
        Ok((Some(version), result))
    }

    /// Returns the kubelet of a commit from the cache, or builds it.
    async fn build(
        &mut self,
        commit: &Commit,
        print: &dyn Fn(&str) -> Result<(), B::Error>,
    ) -> Result<BuildOutcome, B::Error> {
        if let Some(path) = self.builder.cached(&commit.id) {
            print("the kubelet was built before")?;
            return Ok(BuildOutcome::Built(path));
        }
        print(&format!("building, output in {}", self.builder.log(&commit.id).display()))?;
        self.search.file.builds += 1;
        Ok(self.builder.run(&commit.id).await?)
    }

    /// Runs the case on the kubelet of a commit.
    async fn judge(&mut self, commit: &Commit, kubelet: &Kubelet) -> Result<CommitResult, B::Error> {
        let dir = self.root.artifacts().join(short(&commit.id));
        let verdicts = self.worker.run(kubelet, &dir, &mut self.search.file.cluster).await;
        // The cluster of the worker may be another one.
        self.write_file()?;
        let verdicts = verdicts?;
        let tries = Tries::count(&verdicts.terms(&kubelet.label));
        let options = &self.search.file.options;
        Ok(match tries.term(options.tries, options.bad_if) {
            Some(term) => CommitResult::Conclusive { term, tries },
            None => CommitResult::Inconclusive(verdicts.inconclusive_reason(&kubelet.label)),
        })
    }

    fn write_file(&self) -> Result<(), CommitSearchError> {
        Ok(self.search.file.write(self.root.path())?)
    }

    fn no_end_builds(&self) -> CommitSearchError {
        let reason = self.search.file.tested.iter().find_map(|tested| match &tested.result {
            CommitResult::NotBuilt(reason) => Some(reason.clone()),
            _ => None,
        });
        CommitSearchError::NoEndBuilds {
            old: short(&self.search.old).to_owned(),
            new: short(&self.search.new).to_owned(),
            reason: reason.unwrap_or_default(),
            logs: self.builder.logs.clone(),
        }
    }
}
