//! Parameters of a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evictlab_case::LoadedCase;
use evictlab_case::select::Shard;
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{Backend, Kubelet};
use evictlab_report::FlakyResult;
use evictlab_report::baseline::Baseline;

use crate::dispatch::repeat::Repeat;

/// Parameters of a run.
pub struct RunRequest {
    /// Id of the run, see [`new_run_id`].
    pub run_id: String,
    /// Cases to run on each kubelet.
    pub cases: Vec<Arc<LoadedCase>>,
    /// Source of the clusters.
    pub backend: Backend,
    /// The shard of the selection that the cases are.
    pub shard: Option<SelectionShard>,
    /// Repetition of the cases.
    pub repeat: Repeat,
    /// Maximum number of further tries of a case that failed or is inconclusive.
    pub retries: u32,
    /// Start no case after the first one that failed or ended in an error.
    pub fail_fast: bool,
    /// Time limit of the whole run.
    pub timeout: Option<Duration>,
    /// Full names of the images.
    pub image_catalog: Arc<ImageCatalog>,
    /// Verdicts to compare the run with.
    pub baseline: Option<Baseline>,
    /// Cases of the baseline that no file contains any more: they count as changed.
    pub vanished: Vec<VanishedCase>,
    /// Effect of flaky cases on the exit status.
    pub flaky_result: FlakyResult,
}

impl RunRequest {
    /// Returns the labels of all kubelets, from the oldest version to the newest.
    pub fn kubelet_labels(&self) -> Vec<String> {
        let mut kubelets: Vec<&Kubelet> = self.kubelets().collect();
        kubelets.sort_by(|a, b| a.version.cmp(&b.version));
        kubelets.into_iter().map(|kubelet| kubelet.label.clone()).collect()
    }

    /// Returns the `--kubelet` arguments that select the kubelets again, by label.
    pub(crate) fn kubelet_args(&self) -> BTreeMap<String, String> {
        let arg = |kubelet: &Kubelet| match &self.backend {
            Backend::Embedded(_) => Some(kubelet.version.to_string()),
            Backend::Kind(_) => kubelet.argument(),
            Backend::Existing(_) => None,
        };
        self.kubelets().filter_map(|kubelet| Some((kubelet.label.clone(), arg(kubelet)?))).collect()
    }

    fn kubelets(&self) -> impl Iterator<Item = &Kubelet> {
        self.backend.plans().iter().flat_map(|plan| &plan.kubelets)
    }

    /// Returns a request that runs each case once, without a time limit or a baseline.
    pub fn new(
        run_id: String,
        cases: Vec<Arc<LoadedCase>>,
        backend: Backend,
        image_catalog: Arc<ImageCatalog>,
    ) -> Self {
        Self {
            run_id,
            cases,
            backend,
            shard: None,
            repeat: Repeat::Times(1),
            retries: 0,
            fail_fast: false,
            timeout: None,
            image_catalog,
            baseline: None,
            vanished: Vec::new(),
            flaky_result: FlakyResult::Pass,
        }
    }
}

/// A shard of a selection, and the rest of the selection.
pub struct SelectionShard {
    /// The shard.
    pub shard: Shard,
    /// Cases of the other shards.
    pub other_cases: Vec<Arc<LoadedCase>>,
}

/// A case of a baseline that no file contains any more.
pub struct VanishedCase {
    /// The suite.
    pub suite: String,
    /// Name of the case.
    pub name: String,
}

/// Returns a random run id of eight letters and digits, which is valid in Kubernetes names.
pub fn new_run_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    // The standard library's source of randomness.
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    let character = |_| {
        let character = ALPHABET[(random % ALPHABET.len() as u64) as usize];
        random /= ALPHABET.len() as u64;
        char::from(character)
    };
    (0..8).map(character).collect()
}
