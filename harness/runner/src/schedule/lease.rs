//! A node in the hands of a run: prepared once, leased to one case after the other, put back at the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, RwLock};

use super::approach::Unsuited;
use super::loan::Loan;
use crate::case::Case;
use crate::cluster::{Node, NodeError};
use crate::reset::{Itself, NotItself, proof, recovered};
use crate::stage::{Namespace, StageError};
use crate::tune::{self, TuneError};

/// Full names of case images.
pub type Images = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A node that could not be prepared, or did not come back to itself.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It could not be tuned.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// It could not be asked.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// It did not come back.
    #[error(transparent)]
    NotItself(#[from] NotItself),
    /// The API refused something.
    #[error(transparent)]
    Stage(#[from] StageError),
}

/// A node of a run.
pub struct Leased {
    /// The node.
    pub node: Node,
    /// Shared cases hold it for reading, a case that has it for itself for writing.
    pub turn: RwLock<()>,
    /// What goes for it if it is somebody else's.
    pub loan: Option<Loan>,
    state: Mutex<State>,
    canaries: Namespace,
    images: Images,
}

#[derive(Clone, Debug)]
struct State {
    /// What the node needs to start a container, as last measured.
    start: Duration,
    /// How many times slower than measured it is taken to be.
    caution: u32,
    /// How it is when it is quiet.
    quiet: Itself,
    /// What a case that had it for itself left since it was last proved.
    left: Left,
    /// Why it can be leased no more.
    unfit: Option<String>,
}

/// What the last case left of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// What it found.
    Nothing,
    /// Changes, and nobody knows how the node took them.
    Changes,
    /// Changes, and all went as it should: the node took the case's pods, and its kubelet did its work on them.
    Sound,
}

impl Leased {
    /// Gives the node what every case needs of its kubelet, unless it is borrowed, and proves that it takes pods.
    pub async fn prepare(node: Node, run: &str, images: Images) -> Result<Self, LeaseError> {
        let loan = Loan::of(&node).await?;
        let canaries = Namespace::create(node.client(), run, "canary").await?;
        let base = tune::base(node.cgroup_v1);
        if loan.is_none() && !tune::in_shape(&node, &base).await? {
            tune::tune(&node, &base).await?;
        }
        let mut quiet = loan.as_ref().map(Loan::itself).unwrap_or_default();
        let start = proof(&node, &canaries, &quiet, &*images).await?;
        if loan.is_none() {
            quiet.rss = rss(&node).await;
        }
        let state = Mutex::new(State { start, caution: 1, quiet, left: Left::Nothing, unfit: None });
        Ok(Self { node, turn: RwLock::new(()), loan, state, canaries, images })
    }

    /// Why a case is not for this node.
    pub fn refuses(&self, case: &Case) -> Option<Unsuited> {
        match case.cgroup.filter(|wanted| *wanted != self.node.cgroup()) {
            Some(wanted) => Some(Unsuited::Cgroup(wanted)),
            None => self.loan.as_ref()?.refuses(case, &*self.images),
        }
    }

    /// What the node needs to start a container, and more for a node that has shown itself slower than measured.
    pub async fn start(&self) -> Duration {
        let state = self.state.lock().await;
        state.start * state.caution
    }

    /// The least time that pressure takes to the crossing of a threshold.
    pub async fn least_ramp(&self) -> Duration {
        let caution = self.state.lock().await.caution;
        self.loan.as_ref().map_or(Duration::ZERO, |_| Loan::LEAST_RAMP * caution)
    }

    /// Pressure was quicker than the node's statistics: cases get twice the time from now on.
    pub async fn slow_down(&self) {
        self.state.lock().await.caution *= 2;
    }

    /// Why the node can be leased no more, if so.
    pub async fn unfit(&self) -> Option<String> {
        self.state.lock().await.unfit.clone()
    }

    /// Full names of case images.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// A case is about to change the node.
    pub async fn use_up(&self) {
        self.state.lock().await.left = Left::Changes;
    }

    /// The case that changed the node went as it should, and its first container took this long to start.
    pub async fn sound(&self, start: Duration) {
        let mut state = self.state.lock().await;
        if state.left == Left::Changes {
            (state.left, state.start) = (Left::Sound, start);
        }
    }

    /// Whether the last case's changes are still to be taken back.
    pub async fn used(&self) -> bool {
        self.state.lock().await.left != Left::Nothing
    }

    /// Takes the last case's changes back and proves that the node is itself again, before the next case has it. A case that went as
    /// it should has shown that the node takes pods, and no canary is sent after it. A node that is not itself is leased no more.
    pub async fn reset(&self) -> Result<(), LeaseError> {
        let State { start, quiet, left, .. } = self.state.lock().await.clone();
        let reset = async {
            if self.loan.is_none() {
                tune::tune(&self.node, &tune::base(self.node.cgroup_v1)).await?;
            }
            if left == Left::Sound {
                recovered(&self.node, &quiet).await?;
                return Ok(start);
            }
            Ok(proof(&self.node, &self.canaries, &quiet, &*self.images).await?)
        };
        let mut state = self.state.lock().await;
        match reset.await {
            Ok(start) => {
                // The kubelet grows with every case: the next one is measured against what this one left.
                if self.loan.is_none() {
                    state.quiet.rss = rss(&self.node).await.or(quiet.rss);
                }
                (state.start, state.left) = (start, Left::Nothing);
                Ok(())
            }
            Err(error) => {
                let error: LeaseError = error;
                state.unfit = Some(error.to_string());
                Err(error)
            }
        }
    }
}

async fn rss(node: &Node) -> Option<u64> {
    node.summary().await.ok()?["node"]["memory"]["rssBytes"].as_u64()
}
