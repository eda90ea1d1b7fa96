//! A run to merge.

use std::path::{Path, PathBuf};

use crate::recorded::{RecordedRunError, read_events};
use crate::run_dir::RunDir;
use crate::run_event::{CaseId, CaseInfo, RunEvent};
use crate::run_state::{RunStart, RunState};

/// A run to merge: its events, and the state after them.
pub(super) struct Source {
    /// Directory, as the user named it.
    pub(super) dir: PathBuf,
    pub(super) events: Vec<RunEvent>,
    pub(super) state: RunState,
}

/// A case on a kubelet: all its attempts in all runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CaseKubelet {
    pub(super) suite: String,
    pub(super) case: String,
    pub(super) kubelet: String,
}

impl Source {
    /// Reads the run in a directory, up to its last event.
    pub(super) fn read(dir: &Path) -> Result<Self, RecordedRunError> {
        let mut events = Vec::new();
        let mut state = RunState::default();
        read_events(dir, |event| {
            state.apply(&event);
            events.push(event);
        })?;
        match state.run {
            Some(_) => Ok(Self { dir: dir.to_owned(), events, state }),
            None => Err(RecordedRunError::Empty(dir.to_owned())),
        }
    }

    /// The start of the run.
    pub(super) fn start(&self) -> &RunStart {
        self.state.run.as_ref().expect("`read` checked that the run started")
    }

    /// The directory of the evidence.
    pub(super) fn run_dir(&self) -> RunDir {
        RunDir::existing(&self.dir)
    }

    /// Cells of the plan.
    pub(super) fn planned(&self) -> impl Iterator<Item = CaseKubelet> {
        let start = self.start();
        start.cases.iter().flat_map(|info| CaseKubelet::of_case(info, &start.kubelets))
    }

    /// Cells that other shards of the same selection run.
    pub(super) fn planned_by_other_shards(&self) -> impl Iterator<Item = CaseKubelet> {
        let start = self.start();
        let others = start.shard.iter().flat_map(|shard| &shard.other_cases);
        others.flat_map(|info| CaseKubelet::of_case(info, &start.kubelets))
    }
}

impl CaseKubelet {
    /// The cell of an attempt.
    pub(super) fn of(id: &CaseId) -> Self {
        Self { suite: id.suite.clone(), case: id.case.clone(), kubelet: id.kubelet.clone() }
    }

    /// The cells of a case on kubelets.
    pub(super) fn of_case<'a>(info: &'a CaseInfo, kubelets: &'a [String]) -> impl Iterator<Item = Self> {
        kubelets.iter().map(|kubelet| Self {
            suite: info.suite.clone(),
            case: info.case.clone(),
            kubelet: kubelet.clone(),
        })
    }

    /// An attempt in this cell.
    pub(super) fn attempt(&self, attempt: u32) -> CaseId {
        let Self { suite, case, kubelet } = self.clone();
        CaseId { suite, case, kubelet, attempt }
    }
}
