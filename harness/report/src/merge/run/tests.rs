use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::fixtures::{case_ended, case_info, event, id, run_started};
use crate::run_event::{RunEventKind, ShardInfo};
use crate::{EvidenceWriter, JsonLines, Junit, Prow, RunState, fixtures};
use evictlab_judge::{Phase, Verdict};

const OLD: &str = "v1.31.14";
const NEW: &str = "v1.32.13";

/// A run: its directory, its events, and whether it has an end.
struct Run(&'static str, Vec<RunEventKind>, bool);

fn source(nth: usize, Run(dir, kinds, has_end): Run) -> Source {
    let mut events: Vec<RunEvent> = Vec::new();
    let start = nth as f64;
    for (step, mut kind) in kinds.into_iter().enumerate() {
        if let RunEventKind::RunStarted { run_id, .. } = &mut kind {
            *run_id = dir.replace('/', "-");
        }
        events.push(event(start + 10.0 * step as f64, kind));
    }
    if has_end {
        events.push(event(start + 100.0, RunEventKind::RunEnded { exit_code: 0, seconds: 100.0 }));
    }
    Source { dir: dir.into(), state: fixtures::state_after(&events), events }
}

fn merged(runs: Vec<Run>) -> Result<Merge, MergeError> {
    Merge::from_sources(runs.into_iter().enumerate().map(|(nth, run)| source(nth, run)).collect(), None)
}

/// Verdicts, as `case on kubelet #attempt: verdict, why`, and the notes.
fn outcome(merge: &Merge) -> (Vec<String>, Vec<String>) {
    let state = fixtures::state_after(&merge.events);
    let line = |ended: &crate::run_state::EndedCase| {
        let (id, result) = (&ended.id, &ended.result);
        format!("{} on {} #{}: {}, {}", id.case, id.kubelet, id.attempt, result.verdict, result.why)
    };
    let mut verdicts: Vec<String> = state.ended.iter().map(line).collect();
    verdicts.sort();
    (verdicts, merge.notes.clone())
}

fn passed(case: &str, kubelet: &str) -> RunEventKind {
    case_ended(case, kubelet, 1, Verdict::Passed, "as expected")
}

fn skipped(case: &str, kubelet: &str) -> RunEventKind {
    case_ended(case, kubelet, 1, Verdict::Skipped, "the run was interrupted")
}

fn case_started(case: &str, kubelet: &str) -> RunEventKind {
    RunEventKind::CaseStarted { id: id("message", case, kubelet, 1), node: "node-1".to_owned() }
}

fn in_phase(case: &str, kubelet: &str) -> RunEventKind {
    let id = id("message", case, kubelet, 1);
    RunEventKind::CaseStep { id, phase: Phase::Observe, text: "ramp".to_owned() }
}

/// The start of a shard: its own cases and those of the others.
fn shard_started(part: usize, own: &[&str], others: &[&str]) -> RunEventKind {
    let mut start = run_started(&[NEW], own);
    let RunEventKind::RunStarted { shard, .. } = &mut start else { unreachable!("it started") };
    let others = others.iter().map(|case| case_info("message", case)).collect();
    *shard = Some(ShardInfo { part, of: 3, other_cases: others });
    start
}

#[test]
fn attempts_are_numbered_on() {
    let runs = vec![
        Run("a", vec![run_started(&[NEW], &["x", "y"]), passed("x", NEW), skipped("y", NEW)], true),
        Run("b", vec![run_started(&[NEW], &["x", "y"]), passed("x", NEW), passed("y", NEW)], true),
    ];
    let merge = merged(runs).unwrap();
    let (verdicts, notes) = outcome(&merge);
    // `skipped` gives way to a verdict of another run.
    let expected = ["x on v1.32.13 #1", "x on v1.32.13 #2", "y on v1.32.13 #1"];
    assert_eq!(verdicts, expected.map(|attempt| format!("{attempt}: passed, as expected")));
    assert_eq!(notes, ["More than one run has a verdict of 1 case; all attempts count."]);
}

#[test]
fn cases_of_a_killed_run_are_errors_without_another_verdict() {
    let start = || run_started(&[NEW], &["w", "x", "y", "z"]);
    let killed =
        vec![start(), passed("w", NEW), case_started("x", NEW), in_phase("x", NEW), case_started("y", NEW)];
    let again = vec![run_started(&[NEW], &["y"]), passed("y", NEW)];
    let merge = merged(vec![Run("killed", killed, false), Run("again", again, true)]).unwrap();
    let (verdicts, notes) = outcome(&merge);
    assert_eq!(
        verdicts,
        [
            "w on v1.32.13 #1: passed, as expected",
            "x on v1.32.13 #1: error, no verdict: the run in killed was killed while the case ran, or is still going on",
            "y on v1.32.13 #1: passed, as expected",
            "z on v1.32.13 #1: error, no verdict: the run in killed was killed before the case started, or is still going on",
        ]
    );
    assert_eq!(notes, ["The run in killed has no end: it was killed, or is still going on."]);
    let state = fixtures::state_after(&merge.events);
    let phases: Vec<_> = state.ended.iter().filter_map(|ended| ended.result.phase).collect();
    assert_eq!((phases, state.running.len()), (vec![Phase::Observe], 0));
}

#[test]
fn cases_of_missing_shards_are_errors() {
    let runs = vec![
        Run("1", vec![shard_started(1, &["a"], &["b", "c"]), passed("a", NEW)], true),
        Run("3", vec![shard_started(3, &["c"], &["a", "b"]), passed("c", NEW)], true),
    ];
    let (verdicts, notes) = outcome(&merged(runs).unwrap());
    let b = "b on v1.32.13 #1: error, no verdict: shard 2/3 is missing";
    assert_eq!(verdicts[1], b);
    assert_eq!(
        (verdicts.len(), &notes[..]),
        (3, &["Of the selection, shard 2/3 is missing.".to_owned()][..])
    );
}

#[test]
fn cases_that_no_run_planned_are_skipped() {
    let runs = vec![
        Run("old", vec![run_started(&[OLD], &["x", "y"]), passed("x", OLD), passed("y", OLD)], true),
        Run("new", vec![run_started(&[NEW], &["x"]), passed("x", NEW)], true),
    ];
    let (verdicts, notes) = outcome(&merged(runs).unwrap());
    assert_eq!(verdicts[3], "y on v1.32.13 #1: skipped, in none of the merged runs");
    assert_eq!(notes, ["No run planned 1 case on a kubelet of the others: skipped."]);
}

#[test]
fn an_interrupt_counts_if_a_case_lacks_its_verdict() {
    let interrupted = || {
        let start = run_started(&[NEW], &["x", "y"]);
        let kinds = vec![start, passed("x", NEW), RunEventKind::Interrupted { stage: 1 }, skipped("y", NEW)];
        Run("interrupted", kinds, true)
    };
    let rest = Run("rest", vec![run_started(&[NEW], &["y"]), passed("y", NEW)], true);
    for (runs, is_cut_short) in [(vec![interrupted()], true), (vec![interrupted(), rest], false)] {
        let merge = merged(runs).unwrap();
        assert_eq!(fixtures::state_after(&merge.events).was_cut_short(), is_cut_short);
    }
}

#[test]
fn clusters_of_the_same_name_stay_apart() {
    let cluster = || {
        vec![
            run_started(&[NEW], &["x"]),
            RunEventKind::ClusterStarted { cluster: "lab".to_owned(), kubelets: vec![], reused: false },
        ]
    };
    let failed = RunEventKind::ClusterFailed {
        cluster: "lab".to_owned(),
        seconds: 1.0,
        error: "no memory".to_owned(),
        cause: None,
    };
    let failing = [cluster(), vec![failed]].concat();
    let merge = merged(vec![Run("a", failing, true), Run("b", cluster(), true)]).unwrap();
    let state = fixtures::state_after(&merge.events);
    let names: Vec<_> =
        state.clusters.iter().map(|cluster| (cluster.name.as_str(), cluster.creation.is_some())).collect();
    assert_eq!(names, [("lab of run a", true), ("lab of run b", false)]);
}

#[test]
fn rejects_runs_that_cannot_be_compared() {
    let start = |dir, seed: Option<u64>| {
        let mut start = run_started(&[NEW], &["x"]);
        let RunEventKind::RunStarted { model, backend, .. } = &mut start else { unreachable!("it started") };
        if let Some(seed) = seed {
            *backend = crate::BackendName::Embedded;
            let (cgroup, options, on_real_kubelets) =
                (evictlab_rules::CgroupVersion::V2, String::new(), String::new());
            *model = Some(crate::Model { cgroup, seed, options, on_real_kubelets });
        }
        Run(dir, vec![start], true)
    };
    let errors: Vec<String> = [
        vec![],
        vec![start("real", None), start("modelled", Some(0))],
        vec![start("zero", Some(0)), start("one", Some(1))],
    ]
    .into_iter()
    .map(|runs| merged(runs).err().unwrap().to_string())
    .collect();
    insta::assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn a_run_named_twice_counts_once() {
    let run = || Run("a", vec![run_started(&[NEW], &["x"]), passed("x", NEW)], true);
    let (verdicts, notes) = outcome(&merged(vec![run(), run()]).unwrap());
    assert_eq!(
        (verdicts.len(), &notes[..]),
        (1, &["a is the same run as a and counts once.".to_owned()][..])
    );
}

fn write_run(dir: &Path, events: &[RunEvent]) {
    let run_dir = RunDir::at(dir).unwrap();
    fixtures::deliver(&mut JsonLines::create(&run_dir).unwrap(), events);
    fixtures::deliver(&mut EvidenceWriter::new(run_dir), events);
}

#[test]
fn evidence_and_reports_of_all_attempts_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_run(&path("a"), &fixtures::full_run());
    let mut second = fixtures::full_run();
    let RunEventKind::RunStarted { run_id, .. } = &mut second[0].kind else { unreachable!("it started") };
    *run_id = "other".to_owned();
    write_run(&path("b"), &second);
    let case = |run: &str, kubelet: &str| path(run).join("artifacts/message/requests-decide").join(kubelet);
    fs::write(case("b", "v1.32.13").join("kubelet.log"), "of b").unwrap();
    symlink("/etc/passwd", case("b", "v1.32.13").join("stranger.log")).unwrap();
    // Directories that are links: that of a case, and one in the directory of a case.
    fs::create_dir(path("secrets")).unwrap();
    fs::write(path("secrets/key"), "secret").unwrap();
    symlink(path("secrets"), case("b", "v1.32.13").join("try-9")).unwrap();
    let linked = path("b").join("artifacts/message/nobody-offends");
    fs::remove_dir_all(&linked).unwrap();
    fs::create_dir(&linked).unwrap();
    symlink(path("secrets"), linked.join("v1.32.13")).unwrap();

    let run_dir = RunDir::at(&path("merged")).unwrap();
    let reports: Vec<Box<dyn Report>> = vec![
        Box::new(JsonLines::create(&run_dir).unwrap()),
        Box::new(Prow::new(run_dir.clone())),
        Box::new(Junit::new(&run_dir)),
        Box::new(EvidenceWriter::new(run_dir.clone())),
    ];
    let merge = Merge::read(&[path("a"), path("b")], None).unwrap();
    let finished = merge.write(&run_dir, reports).unwrap();
    assert!(finished.failures.is_empty(), "{:?}", finished.failures);

    let run = crate::RecordedRun::read(&path("merged")).unwrap();
    assert!(run.is_over() && run.state().ended.len() == 2 * fixtures::state_after(&second).ended.len());
    let first = run.state().ended.iter().find(|ended| ended.id.case == "requests-decide").unwrap();
    let json = |observations| serde_json::to_value(observations).unwrap();
    assert_eq!(json(run.evidence(first).unwrap().unwrap()), json(fixtures::evidence()));
    let copied = case("merged", "v1.32.13-2");
    assert_eq!(fs::read_to_string(copied.join("kubelet.log")).unwrap(), "of b");
    assert_eq!(fs::metadata(copied.join("kubelet.log")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!copied.join("stranger.log").exists() && !copied.join("try-9").exists());
    let merged = path("merged/artifacts/message/nobody-offends");
    assert!(!merged.join("v1.32.13/key").exists() && !merged.join("v1.32.13-2/key").exists());
    for name in ["started.json", "finished.json", "artifacts/junit_evictlab.xml"] {
        assert!(path("merged").join(name).is_file(), "{name}");
    }
}

/// Verdicts by case, kubelet and attempt.
fn verdicts(state: &RunState) -> BTreeMap<String, Verdict> {
    let entry = |ended: &crate::run_state::EndedCase| (ended.id.full_title(), ended.result.verdict);
    state.ended.iter().map(entry).collect()
}

/// A run of eight cases on two kubelets, with a verdict for each.
fn whole_run(seen: &[Verdict]) -> (Vec<String>, Vec<RunEventKind>) {
    let names: Vec<String> = (0..8).map(|nth| format!("case-{nth}")).collect();
    let kubelets = [OLD, NEW].into_iter();
    let cells = kubelets.flat_map(|kubelet| names.iter().map(move |name| (name.clone(), kubelet)));
    let ends = cells
        .zip(seen)
        .map(|((name, kubelet), verdict)| case_ended(&name, kubelet, 1, *verdict, "so it was"));
    let ends = ends.collect();
    (names, ends)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The parts of any split, put together again, have the verdicts and the exit status of the
    /// whole.
    #[test]
    fn any_split_merges_to_the_whole(
        seen in vec(select(&[Verdict::Passed, Verdict::Failed, Verdict::Reproduced, Verdict::Skipped,
            Verdict::Error, Verdict::Inconclusive][..]), 16),
        part_of in vec(0_usize..4, 16),
        by_kubelet in any::<bool>(),
    ) {
        let (names, ends) = whole_run(&seen);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let whole = [vec![run_started(&[OLD, NEW], &all)], ends.clone()].concat();
        let part = |nth: usize| if by_kubelet { nth / 8 } else { part_of[nth % 8] };
        let runs = (0..4).filter_map(|number| {
            let nths: Vec<usize> = (0..16).filter(|nth| part(*nth) == number).collect();
            let mut cases: Vec<&str> = nths.iter().map(|nth| all[nth % 8]).collect();
            cases.sort_unstable();
            cases.dedup();
            let kubelets: &[&str] = match (by_kubelet, number) {
                (true, 0) => &[OLD],
                (true, _) => &[NEW],
                (false, _) => &[OLD, NEW],
            };
            let dir = ["0", "1", "2", "3"][number];
            let own = nths.iter().map(|nth| ends[*nth].clone());
            let kinds: Vec<_> = std::iter::once(run_started(kubelets, &cases)).chain(own).collect();
            (!nths.is_empty()).then_some(Run(dir, kinds, true))
        });
        let merge = merged(runs.collect()).unwrap();
        let whole = source(0, Run("whole", whole, true));
        let state = fixtures::state_after(&merge.events);
        prop_assert_eq!(verdicts(&state), verdicts(&whole.state));
        let status = |events: &[RunEvent]| replay(events, vec![]).exit_code;
        prop_assert_eq!(status(&merge.events), status(&whole.events[..whole.events.len() - 1]));
    }
}
