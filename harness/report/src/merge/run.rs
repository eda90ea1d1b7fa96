//! The merged run.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use evictlab_judge::Verdict;

use super::attempts::Attempts;
use super::error::MergeError;
use super::events::merge_events;
use super::evidence::copy_evidence;
use super::plan::{merged_start, missing_shards, versions};
use super::source::Source;
use crate::baseline::Baseline;
use crate::run_dir::RunDir;
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::RunStart;
use crate::sink::{Finished, Report, ReportError, replay};
use crate::text::count_noun;

/// Runs that were read and become one.
pub struct Merge {
    sources: Vec<Source>,
    attempts: Attempts,
    events: Vec<RunEvent>,
    notes: Vec<String>,
}

impl Merge {
    /// Reads the runs in these directories. `baseline` replaces the baselines of the runs.
    ///
    /// # Errors
    /// A directory does not contain a run; the runs are of different backends or models.
    pub fn read(dirs: &[PathBuf], baseline: Option<&Baseline>) -> Result<Self, MergeError> {
        let sources = dirs.iter().map(|dir| Source::read(dir)).collect::<Result<Vec<_>, _>>()?;
        Self::from_sources(sources, baseline)
    }

    fn from_sources(mut sources: Vec<Source>, baseline: Option<&Baseline>) -> Result<Self, MergeError> {
        let mut notes = Vec::new();
        sources.sort_by_key(|source| source.start().real_start);
        remove_repeats(&mut sources, &mut notes);
        if sources.is_empty() {
            return Err(MergeError::Empty);
        }
        let start = merged_start(&sources, baseline)?;
        let starts: Vec<&RunStart> = sources.iter().map(Source::start).collect();
        let missing = missing_shards(&starts);
        let attempts = Attempts::of(&sources, missing.as_deref());
        add_notes(&mut notes, &sources, &attempts, missing);
        let events = merge_events(&sources, start, &attempts);
        Ok(Self { sources, attempts, events, notes })
    }

    /// Overlaps, gaps and differences between the runs, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Labels of the kubelets of the merged run.
    pub fn kubelets(&self) -> Vec<String> {
        let mut labels: Vec<String> =
            self.sources.iter().flat_map(|source| source.start().kubelets.clone()).collect();
        labels.sort();
        labels.dedup();
        labels
    }

    /// Cases that ended on one of these kubelets and were skipped on none, as `suite/case`.
    pub fn cases_not_skipped_on(&self, kubelets: &[String]) -> BTreeSet<String> {
        let (mut cases, mut skipped) = (BTreeSet::new(), BTreeSet::new());
        for event in &self.events {
            let RunEventKind::CaseEnded { id, result, .. } = &event.kind else { continue };
            if kubelets.contains(&id.kubelet) {
                let of_verdict = match result.verdict {
                    Verdict::Skipped => &mut skipped,
                    _ => &mut cases,
                };
                of_verdict.insert(id.suite_and_case());
            }
        }
        &cases - &skipped
    }

    /// Writes the merged run: passes its events to `reports`, whose evidence without observations
    /// is replaced by that of the runs.
    ///
    /// # Errors
    /// The evidence could not be copied.
    pub fn write(self, run_dir: &RunDir, reports: Vec<Box<dyn Report>>) -> Result<Finished, ReportError> {
        let finished = replay(&self.events, reports);
        copy_evidence(&self.sources, &self.attempts, run_dir)?;
        Ok(finished)
    }
}

/// Removes runs that are named twice, as by `results/latest`.
fn remove_repeats(sources: &mut Vec<Source>, notes: &mut Vec<String>) {
    let mut seen: Vec<(String, PathBuf)> = Vec::new();
    sources.retain(|source| {
        let id = source.start().id.clone();
        let first = seen.iter().find(|(other, _)| *other == id).map(|(_, dir)| dir.display().to_string());
        if let Some(first) = &first {
            notes.push(format!("{} is the same run as {first} and counts once.", source.dir.display()));
        }
        seen.push((id, source.dir.clone()));
        first.is_none()
    });
}

fn add_notes(notes: &mut Vec<String>, sources: &[Source], attempts: &Attempts, missing: Option<String>) {
    for source in sources.iter().filter(|source| source.state.end.is_none()) {
        let dir = source.dir.display();
        notes.push(format!("The run in {dir} has no end: it was killed, or is still going on."));
    }
    if let Some(missing) = missing {
        notes.push(format!("Of the selection, {missing}."));
    }
    if attempts.overlaps > 0 {
        let cells = count_noun(attempts.overlaps, "case");
        notes.push(format!("More than one run has a verdict of {cells}; all attempts count."));
    }
    if attempts.unplanned > 0 {
        let cells = count_noun(attempts.unplanned, "case");
        notes.push(format!("No run planned {cells} on a kubelet of the others: skipped."));
    }
    let versions = versions(&sources.iter().map(Source::start).collect::<Vec<_>>());
    if versions.len() > 1 {
        notes.push(format!("The runs are of different versions of evictlab: {}.", versions.join(", ")));
    }
}
