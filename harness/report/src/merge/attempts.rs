//! The attempts of a merged run, and the cases without one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::source::{CaseKubelet, Source};
use crate::run_event::CaseId;
use evictlab_judge::{CaseResult, Phase, Verdict};

/// The attempts of all runs, numbered on.
#[derive(Default)]
pub(super) struct Attempts {
    /// Number in the merged run, by run and attempt. Attempts without a number are not in it.
    numbers: HashMap<(usize, CaseId), u32>,
    /// Attempts without an end, and planned cases without an attempt, with the result they get.
    pub(super) gaps: Vec<(CaseId, CaseResult)>,
    /// Cells with verdicts of more than one run.
    pub(super) overlaps: usize,
    /// Cells that no run planned, although other cases ran on their kubelet, or they on others.
    pub(super) unplanned: usize,
}

/// Attempts in one cell: run, attempt, and verdict; `None` without an end.
type InCell = Vec<(usize, CaseId, Option<Verdict>)>;

impl Attempts {
    /// Numbers the attempts of `sources`, and finds gaps. `missing_shards` explains some of them.
    pub(super) fn of(sources: &[Source], missing_shards: Option<&str>) -> Self {
        let mut attempts = Self::default();
        let mut cells: BTreeMap<CaseKubelet, InCell> = BTreeMap::new();
        for (nth, source) in sources.iter().enumerate() {
            let ended = source.state.ended.iter().map(|ended| (&ended.id, Some(ended.result.verdict)));
            let running = source.state.running.iter().map(|running| (&running.id, None));
            for (id, verdict) in ended.chain(running) {
                cells.entry(CaseKubelet::of(id)).or_default().push((nth, id.clone(), verdict));
            }
        }
        for (cell, in_cell) in &cells {
            attempts.number_cell(cell, in_cell, sources);
        }
        attempts.find_gaps(sources, &cells, missing_shards);
        attempts
    }

    /// Number of an attempt in the merged run; `None` if it is not in it.
    pub(super) fn number(&self, source: usize, id: &CaseId) -> Option<u32> {
        self.numbers.get(&(source, id.clone())).copied()
    }

    fn number_cell(&mut self, cell: &CaseKubelet, in_cell: &InCell, sources: &[Source]) {
        let has_run = |verdict: &Option<Verdict>| verdict.is_some_and(|verdict| verdict != Verdict::Skipped);
        let other_ran =
            |nth: usize| in_cell.iter().any(|(other, _, verdict)| *other != nth && has_run(verdict));
        let ended = |(nth, _, verdict): &&(usize, CaseId, Option<Verdict>)| match verdict {
            Some(Verdict::Skipped) => !other_ran(*nth),
            verdict => verdict.is_some(),
        };
        let kept: Vec<_> = in_cell.iter().filter(ended).collect();
        for (number, (nth, id, _)) in (1..).zip(&kept) {
            self.numbers.insert((*nth, id.clone()), number);
        }
        let runs: BTreeSet<usize> = kept.iter().map(|(nth, ..)| *nth).collect();
        self.overlaps += usize::from(runs.len() > 1);
        if let (true, Some((nth, id, _))) = (kept.is_empty(), in_cell.first()) {
            self.numbers.insert((*nth, id.clone()), 1);
            let running = sources[*nth].state.running.iter().find(|running| running.id == *id);
            let phase = running.map(|running| running.phase);
            self.gaps.push((cell.attempt(1), died(&sources[*nth], phase)));
        }
    }

    fn find_gaps(
        &mut self,
        sources: &[Source],
        cells: &BTreeMap<CaseKubelet, InCell>,
        missing_shards: Option<&str>,
    ) {
        let mut planned: BTreeMap<CaseKubelet, &Source> = BTreeMap::new();
        for source in sources {
            for cell in source.planned() {
                let first = planned.entry(cell).or_insert(source);
                // A run that ended explains a missing verdict itself.
                if source.state.end.is_some() {
                    *first = source;
                }
            }
        }
        let has_attempt = |cell: &CaseKubelet| cells.contains_key(cell);
        for (cell, source) in planned.iter().filter(|(cell, _)| !has_attempt(cell)) {
            if source.state.end.is_none() {
                self.gaps.push((cell.attempt(1), died(source, None)));
            }
        }
        let others: BTreeSet<CaseKubelet> =
            sources.iter().flat_map(Source::planned_by_other_shards).collect();
        for cell in others.iter().filter(|cell| !planned.contains_key(cell)) {
            let missing = missing_shards.unwrap_or("no run of its shard was merged");
            self.gaps.push((cell.attempt(1), error(format!("no verdict: {missing}"), None)));
        }
        for cell in
            all_cells(sources).iter().filter(|cell| !planned.contains_key(cell) && !others.contains(cell))
        {
            let why = "in none of the merged runs".to_owned();
            self.gaps.push((cell.attempt(1), CaseResult::without_evidence(Verdict::Skipped, why)));
            self.unplanned += 1;
        }
    }
}

/// Every case on every kubelet of any run.
fn all_cells(sources: &[Source]) -> BTreeSet<CaseKubelet> {
    let kubelets: BTreeSet<String> =
        sources.iter().flat_map(|source| source.start().kubelets.clone()).collect();
    let kubelets: Vec<String> = kubelets.into_iter().collect();
    let cases = sources.iter().flat_map(|source| &source.start().cases);
    cases.flat_map(|info| CaseKubelet::of_case(info, &kubelets)).collect()
}

/// The result of a case whose run has no end; `phase` is that of the case, if it started.
fn died(source: &Source, phase: Option<Phase>) -> CaseResult {
    let when = if phase.is_some() { "while the case ran" } else { "before the case started" };
    let dir = source.dir.display();
    error(format!("no verdict: the run in {dir} was killed {when}, or is still going on"), phase)
}

fn error(why: String, phase: Option<Phase>) -> CaseResult {
    CaseResult { phase, ..CaseResult::without_evidence(Verdict::Error, why) }
}
