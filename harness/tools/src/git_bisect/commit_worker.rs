//! The worker on which the kubelets of commits run, one after the other: a modelled node, or the
//! worker of a kind cluster that outlives the runs.

use std::fs;
use std::path::Path;

use evictlab_cluster::{Kubelet, is_skew_allowed};
use evictlab_report::ClusterFailureCause;
use evictlab_rules::KubeletVersion;
use tokio_util::sync::CancellationToken;

use super::error::CommitSearchError;
use super::search_file::KeptCluster;
use crate::bisect::KubeletVerdicts;

/// Runs the case of a search on the kubelets of commits.
pub trait CommitBackend {
    /// Failure that ends the search.
    type Error: From<CommitSearchError>;

    /// Returns the kubelet of a binary, or the reason why it cannot run.
    fn kubelet(
        &self,
        binary: &Path,
        version: &KubeletVersion,
    ) -> impl Future<Output = Result<Kubelet, String>>;

    /// Runs the case on a kubelet and writes the run to `dir`. The kubelet replaces that of the
    /// cluster in `kept`; without one, the run creates a cluster and stores it there, if the
    /// backend keeps it.
    fn run(
        &self,
        kubelet: &Kubelet,
        dir: &Path,
        kept: &mut Option<KeptCluster>,
    ) -> impl Future<Output = Result<KubeletVerdicts, Self::Error>>;

    /// Deletes the cluster in `kept`, if it is set.
    fn delete(&self, kept: &mut Option<KeptCluster>) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The worker of a search for a commit.
#[derive(Debug)]
pub struct CommitWorker<B> {
    backend: B,
    stop: CancellationToken,
    /// True if the new cluster of the last kubelet failed.
    has_failed: bool,
}

impl<B: CommitBackend> CommitWorker<B> {
    /// Returns the worker of a backend. After `stop`, a cluster that fails is not replaced.
    pub fn new(backend: B, stop: CancellationToken) -> Self {
        Self { backend, stop, has_failed: false }
    }

    /// Returns the backend.
    pub(super) fn backend(&self) -> &B {
        &self.backend
    }

    /// Runs the case on a kubelet and writes the run to `dir`. A cluster in `kept` that fails, or
    /// whose version the kubelet does not support, is replaced by a new one.
    ///
    /// # Errors
    /// Those of the backend, or new clusters failed for two kubelets in a row: the cause is not the
    /// kubelet.
    pub(super) async fn run(
        &mut self,
        kubelet: &Kubelet,
        dir: &Path,
        kept: &mut Option<KeptCluster>,
    ) -> Result<KubeletVerdicts, B::Error> {
        if kept.as_ref().is_some_and(|kept| !fits(kept, kubelet)) {
            self.backend.delete(kept).await?;
        }
        let is_kept = kept.is_some();
        let mut verdicts = self.run_once(kubelet, dir, kept).await;
        if self.stop.is_cancelled() {
            return verdicts;
        }
        if is_kept && !matches!(&verdicts, Ok(verdicts) if verdicts.cluster_failure().is_none()) {
            self.backend.delete(kept).await?;
            if !verdicts.as_ref().is_ok_and(is_start_failure) {
                verdicts = self.run_once(kubelet, dir, kept).await;
            }
        }
        let verdicts = verdicts?;
        let failure = verdicts.cluster_failure().filter(|_| !is_start_failure(&verdicts));
        match failure {
            Some(failure) if self.has_failed => return Err(CommitSearchError::Clusters(failure).into()),
            failure => self.has_failed = failure.is_some(),
        }
        Ok(verdicts)
    }

    async fn run_once(
        &self,
        kubelet: &Kubelet,
        dir: &Path,
        kept: &mut Option<KeptCluster>,
    ) -> Result<KubeletVerdicts, B::Error> {
        // Left by an interrupted run of this commit, or by one whose cluster failed.
        if dir.exists() {
            let failed = |source| CommitSearchError::Remove { dir: dir.to_owned(), source };
            fs::remove_dir_all(dir).map_err(failed)?;
        }
        self.backend.run(kubelet, dir, kept).await
    }
}

/// Returns whether a kubelet can replace that of a kept cluster: its own cluster would have node
/// images of the same minor version.
fn fits(kept: &KeptCluster, kubelet: &Kubelet) -> bool {
    kept.version.minor == kubelet.image_version.minor && is_skew_allowed(&kept.version, &kubelet.version)
}

/// Returns whether the cluster failed because the kubelet does not start.
fn is_start_failure(verdicts: &KubeletVerdicts) -> bool {
    let cause = verdicts.cluster_failure().and_then(|failure| failure.cause);
    cause == Some(ClusterFailureCause::KubeletBinary)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use evictlab_report::{RunEvent, RunEventKind, RunState};
    use jiff::Timestamp;
    use tokio::runtime::Builder;

    use super::*;

    fn kubelet(version: &str, image: &str) -> Kubelet {
        Kubelet {
            label: version.to_owned(),
            version: version.parse().unwrap(),
            image: format!("kindest/node:{image}"),
            image_version: image.parse().unwrap(),
            binary: Some("/cache/kubelet".into()),
        }
    }

    fn cluster(version: &str) -> KeptCluster {
        KeptCluster { name: "evictlab-a".to_owned(), run: "a".to_owned(), version: version.parse().unwrap() }
    }

    #[test]
    fn a_cluster_fits_kubelets_of_its_minor_version() {
        // Version of the kubelet, version of its node image.
        for (version, image, expected) in [
            ("v1.34.2", "v1.34.2", true),
            ("v1.34.0-alpha.1.5+3f2a", "v1.34.0", true),
            ("v1.33.4-12+3f2a", "v1.34.2", true),
            ("v1.33.4", "v1.33.4", false),
            ("v1.35.0-alpha.0.7+3f2a", "v1.35.0", false),
        ] {
            assert_eq!(fits(&cluster("v1.34.2"), &kubelet(version, image)), expected, "{version} on {image}");
        }
    }

    /// Ends of a run: without a failure of the cluster, or with one.
    #[derive(Clone, Copy)]
    enum RunEnd {
        Judged,
        Failed(Option<ClusterFailureCause>),
    }

    /// The failures of the other clusters.
    const FAILED: RunEnd = RunEnd::Failed(None);

    /// A backend whose runs end in this order, and which logs its calls.
    struct TestBackend {
        ends: RefCell<VecDeque<RunEnd>>,
        calls: RefCell<Vec<&'static str>>,
    }

    impl CommitBackend for TestBackend {
        type Error = CommitSearchError;

        async fn kubelet(&self, _: &Path, _: &KubeletVersion) -> Result<Kubelet, String> {
            Err("not tested".to_owned())
        }

        async fn run(
            &self,
            kubelet: &Kubelet,
            _: &Path,
            kept: &mut Option<KeptCluster>,
        ) -> Result<KubeletVerdicts, CommitSearchError> {
            self.calls.borrow_mut().push(if kept.is_some() { "replace" } else { "create" });
            kept.get_or_insert_with(|| cluster(&kubelet.image_version.to_string()));
            let verdicts = KubeletVerdicts::default();
            if let RunEnd::Failed(cause) = self.ends.borrow_mut().pop_front().unwrap() {
                let (cluster, error) = ("c".to_owned(), "no answer".to_owned());
                let kind = RunEventKind::ClusterFailed { cluster, seconds: 1.0, error, cause };
                let event = RunEvent { at: Timestamp::UNIX_EPOCH, kind };
                verdicts.collector().on_event(&event, &RunState::default()).unwrap();
            }
            Ok(verdicts)
        }

        async fn delete(&self, kept: &mut Option<KeptCluster>) -> Result<(), CommitSearchError> {
            self.calls.borrow_mut().push("delete");
            *kept = None;
            Ok(())
        }
    }

    /// Runs kubelets of a minor version each; returns the calls of the backend and the last error.
    fn calls(minors: &[u32], ends: &[RunEnd]) -> (Vec<&'static str>, Option<String>) {
        let ends = RefCell::new(ends.iter().copied().collect());
        let backend = TestBackend { ends, calls: RefCell::default() };
        let mut worker = CommitWorker::new(backend, CancellationToken::new());
        let runtime = Builder::new_current_thread().build().unwrap();
        let (mut kept, mut error) = (None, None);
        for minor in minors {
            let version = format!("v1.{minor}.0");
            let kubelet = kubelet(&version, &version);
            let run = worker.run(&kubelet, Path::new("no/such/run"), &mut kept);
            error = runtime.block_on(run).err().map(|error| error.to_string());
        }
        assert!(worker.backend.ends.borrow().is_empty());
        (worker.backend.calls.into_inner(), error)
    }

    #[test]
    fn a_cluster_is_replaced_if_it_failed_or_does_not_fit() {
        let start_failure = RunEnd::Failed(Some(ClusterFailureCause::KubeletBinary));
        for (minors, ends, expected) in [
            (&[34, 34][..], &[RunEnd::Judged, RunEnd::Judged][..], &["create", "replace"][..]),
            (&[34, 35], &[RunEnd::Judged, RunEnd::Judged], &["create", "delete", "create"]),
            (
                &[34, 34],
                &[RunEnd::Judged, FAILED, RunEnd::Judged],
                &["create", "replace", "delete", "create"],
            ),
            // Another cluster does not help a kubelet that does not start.
            (&[34, 34], &[RunEnd::Judged, start_failure], &["create", "replace", "delete"]),
            (&[34], &[FAILED], &["create"]),
        ] {
            assert_eq!(calls(minors, ends), (expected.to_vec(), None));
        }
    }

    #[test]
    fn new_clusters_that_fail_for_two_kubelets_in_a_row_end_the_search() {
        let (_, error) = calls(&[34, 35], &[FAILED, FAILED]);
        let text = "failed to create clusters for two kubelets in a row: cluster c failed: no answer";
        assert_eq!(error.as_deref(), Some(text));
        let start_failure = RunEnd::Failed(Some(ClusterFailureCause::KubeletBinary));
        for between in [RunEnd::Judged, start_failure] {
            assert_eq!(calls(&[34, 35, 36], &[FAILED, between, FAILED]).1, None);
        }
    }
}
