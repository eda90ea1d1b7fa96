//! `evictlab run` on the embedded cluster: every case, every fault, reproducible output.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::thread;

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

use crate::squeezed;

/// One kubelet with the bug of kubernetes/kubernetes#124938, one without.
const KUBELETS: [&str; 4] = ["--kubelet", "v1.31", "--kubelet", "v1.32"];

/// Verdict and reason by case and kubelet.
type Verdicts = BTreeMap<(String, String), (String, String)>;

struct Ran {
    status: i32,
    out: String,
    verdicts: Verdicts,
    run: String,
    folder: TempDir,
}

/// Runs cases on the embedded cluster, without Docker or any other program.
fn run(arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_clear().env("PATH", "/nonexistent").arg("run");
    let output = command.args(arguments).args(["--output-dir", "results"]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let events = fs::read_to_string(folder.path().join("results/artifacts/events.jsonl"))
        .unwrap_or_else(|error| panic!("{error}\n{out}\n{}", String::from_utf8_lossy(&output.stderr)));
    let mut verdicts = Verdicts::new();
    let mut run = String::new();
    for event in events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        match text("/type").as_str() {
            "run-started" => run = text("/run"),
            "case-ended" => {
                let verdict = (text("/result/verdict"), text("/result/why"));
                verdicts.insert((text("/case"), text("/kubelet")), verdict);
            }
            _ => {}
        }
    }
    Ran { status: output.status.code().unwrap(), out, verdicts, run, folder }
}

/// The verdicts of real kubelets, or of the model for kubelets that were not available.
fn baseline() -> String {
    format!("--baseline={}", concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/baseline.json"))
}

/// A run that is compared with the baseline.
pub(crate) struct BaselineRun {
    status: i32,
    out: String,
    verdicts: Verdicts,
    run: String,
    /// Contents by path, without the run's ID and real start.
    files: BTreeMap<String, String>,
    pub(crate) events: Vec<Value>,
}

impl BaselineRun {
    /// Runs all cases on a kubelet.
    fn of_all_cases() -> Self {
        Self::new(&["--kubelet", "v1.32"])
    }

    fn new(arguments: &[&str]) -> Self {
        let ran = run(&[arguments, &[&baseline()]].concat());
        let files = files(&ran);
        let events = fs::read_to_string(ran.folder.path().join("results/artifacts/events.jsonl")).unwrap();
        let events = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { status: ran.status, out: ran.out, verdicts: ran.verdicts, run: ran.run, files, events }
    }
}

/// The run that several tests examine: it takes half a minute.
pub(crate) static ALL_CASES: LazyLock<BaselineRun> = LazyLock::new(BaselineRun::of_all_cases);

#[test]
fn a_case_of_the_baseline_without_a_file_is_a_change() {
    let cases = tempfile::tempdir().unwrap();
    fs::create_dir(cases.path().join("mine")).unwrap();
    let text = include_str!("../../../../cases/message/ephemeral-resources-are-refused.yaml");
    fs::write(cases.path().join("mine/ephemeral-resources-are-refused.yaml"), text).unwrap();
    let baseline = cases.path().join("baseline.json");
    let verdicts =
        r#"{"mine/ephemeral-resources-are-refused": {"v1.36": "passed"}, "mine/gone": {"v1.36": "passed"}}"#;
    fs::write(&baseline, verdicts).unwrap();
    let baseline = format!("--baseline={}", baseline.display());
    let common = ["--cases", cases.path().to_str().unwrap(), "--kubelet", "v1.36", &baseline];
    let whole = run(&common);
    assert!(whole.status == 5 && whole.out.contains("1 changed, 1 unchanged"), "{}", whole.out);
    assert!(squeezed(&whole.out).contains("| mine/gone | v1.36.4 | passed | did not run |"), "{}", whole.out);
    let selected = run(&[&common[..], &["ephemeral-resources-are-refused"]].concat());
    assert!(selected.status == 0 && selected.out.contains("0 changed"), "{}", selected.out);
}

/// The Cargo tests of the cases do this for all kubelets.
#[test]
fn every_verdict_matches_the_baseline() {
    let ran = &*ALL_CASES;
    assert!(ran.status == 0 && ran.out.contains("Since the baseline: 0 changed"), "{}", ran.out);
    assert!(!ran.out.contains("not in it"), "update the baseline: --write-baseline");
    let bad: Vec<_> = ran
        .verdicts
        .iter()
        // A try that did not reach its threshold is repeated; the reports show it as flaky.
        .filter(|(_, (verdict, _))| {
            !matches!(verdict.as_str(), "passed" | "flaky" | "reproduced" | "skipped")
        })
        .collect();
    assert!(bad.is_empty(), "{bad:#?}\n{}", ran.out);
    let sidecars = run(&[&["sidecars-are-named"][..], &KUBELETS, &[&baseline()]].concat());
    let verdicts: Vec<_> = sidecars.verdicts.values().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!((verdicts, sidecars.status), (vec!["reproduced", "passed"], 0), "{}", sidecars.out);
    assert!(ran.out.trim_end().lines().last().unwrap().contains("--backend kind"), "{}", ran.out);
}

/// Possible verdicts with a fault, apart from the verdict without it.
const FAULTS: [(&str, &[&str]); 13] = [
    ("event-lost: {}", &["inconclusive"]),
    ("event-doubled: {}", &["inconclusive"]),
    ("event-late: {by: 5s}", &[]),
    ("event-late: {by: 1m}", &["inconclusive"]),
    ("watch-closed: {at: 2s}", &[]),
    ("watch-expired: {at: 2s}", &[]),
    // The error may hit the evidence of a case that ends at this time.
    ("api-error: {at: 2s}", &["inconclusive", "error"]),
    // It may hide the trigger of a case, which then runs again.
    ("api-error: {at: 8s, for: 20s, code: 503}", &["inconclusive", "error", "flaky"]),
    ("api-slow: {at: 2s, by: 1s}", &[]),
    ("kubelet-restart: {at: 3s}", &["inconclusive", "flaky"]),
    ("oom-kill: {at: 3s}", &["inconclusive"]),
    ("node-gone: {at: 3s}", &["error"]),
    ("stats-missing: {}", &["inconclusive", "failed"]),
];

#[test]
fn no_fault_causes_a_wrong_verdict() {
    // In these suites all evidence comes from the kubelet; other suites also use independent
    // evidence.
    let suites = [&["message", "limits", "--evidence", "failures"][..], &KUBELETS].concat();
    let without = run(&suites);
    assert!(without.verdicts.len() >= 42, "{}", without.out);
    let check = |(fault, may): (&str, &[&str])| {
        let with = run(&[&suites[..], &["--fault", fault]].concat());
        let wrong: Vec<_> = with
            .verdicts
            .iter()
            .filter(|(case, (verdict, _))| {
                *verdict != without.verdicts[*case].0 && !may.contains(&verdict.as_str())
            })
            .collect();
        assert!(wrong.is_empty(), "{fault}: {wrong:#?}\n{}", with.out);
        assert_eq!(with.verdicts.len(), without.verdicts.len(), "{fault}");
    };
    // This test takes longer than the others.
    let (some, others) = FAULTS.split_at(FAULTS.len() / 2);
    thread::scope(|threads| {
        threads.spawn(|| some.iter().copied().for_each(check));
        others.iter().copied().for_each(check);
    });
}

/// On a busy host, the first Summary arrives after the end of a case without pressure.
#[test]
fn the_first_summary_may_arrive_after_the_end() {
    let fault = "api-slow: {by: 25s, for: 2m, resource: nodes}";
    let ran = run(&["oom-score-adj-by-qos", "--kubelet", "v1.31", "--fault", fault]);
    let verdicts: Vec<_> = ran.verdicts.values().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["passed"], "{}", ran.out);
}

/// Steps of a case run commands in containers, load images, and create and delete static pods.
#[test]
fn steps_run_commands_load_images_and_create_static_pods() {
    const POD: &str = "pods: [{metadata: {generateName: idle-}, spec: {containers: [{name: el1, image: 'agnhost:2.52', args: [pause]}]}}]";
    let cases = [
        (
            "answers",
            r#"do: [
              {when: running(pods.idle), load-image: 'registry.example/tool:1'},
              {exec: {pod: idle, command: [sh, -c, 'echo "in $HOSTNAME"; echo wrong >&2; exit 3']}, answer: ended},
              {when: "node.status.images.exists(image, 'registry.example/tool:1' in image.names)"}]
            expect:
              that:
                - {what: exit status, value: answers.ended.code, is: 3}
                - {what: stdout, value: answers.ended.stdout, matches: "^in idle-.....\n$"}
                - {what: stderr, value: answers.ended.stderr, is: "wrong\n"}"#,
            ("passed", "the expected outcome was observed"),
        ),
        (
            "static-pods",
            r#"do: [
              {when: running(pods.idle), create-static-pod: {metadata: {name: late}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: el1, image: 'agnhost:2.52', args: [pause]}]}}},
              {when: running(pods.late), delete: {pod: late}, about: deleting the mirror pod},
              {when: "history.late.exists(h, h.gone) && running(pods.late)", delete-static-pod: late},
              {when: "history.late.filter(h, h.gone).size() == 2"}]
            expect:
              evicted: []
              that:
                - {what: mirror pods, value: "podList.filter(pod, pod.metadata.name.startsWith('late-')).size()", is: 2}"#,
            ("passed", "the expected outcome was observed"),
        ),
        (
            "fails",
            "do: [{when: running(pods.idle), exec: {pod: idle, command: [sh, -c, 'echo wrong; exit 3']}}]
            expect: {evicted: []}",
            ("error", "exited with 3: wrong"),
        ),
        (
            "never-ends",
            "do: [{when: running(pods.idle), exec: {pod: idle, container: el1, command: [sleep, '100']}}]
            expect: {evicted: []}",
            ("error", "it has not ended after 60 s"),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("steps")).unwrap();
    let files = cases.map(|(name, rest, _)| {
        let path = folder.path().join(format!("steps/{name}.yaml"));
        let rest = rest.replace("\n            ", "\n");
        fs::write(&path, format!("name: {name}\nabout: A test.\nuntil: 'true'\n{POD}\n{rest}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let arguments: Vec<&str> = files.iter().map(String::as_str).chain(["--kubelet", "v1.36"]).collect();
    let ran = run(&arguments);
    for (name, _, (verdict, why)) in cases {
        let found = ran.verdicts.iter().find(|((case, _), _)| case == name).unwrap().1;
        assert!(found.0 == verdict && found.1.contains(why), "{name}: {found:?}\n{}", ran.out);
    }
}

/// The API server answers an expired watch with an error, and the client lists the objects again: a
/// case that would end meanwhile waits for it.
#[test]
fn an_expired_watch_delays_the_end_of_a_case() {
    for at in [1200, 1300, 1400, 1500, 1600, 1700, 1800] {
        let fault = format!("watch-expired: {{at: {at}ms}}");
        let arguments =
            ["ephemeral-resources-are-refused", "--kubelet", "v1.31,v1.32,v1.36", "--fault", &fault];
        let ran = run(&arguments);
        let verdicts: Vec<_> = ran.verdicts.values().map(|(verdict, _)| verdict.as_str()).collect();
        assert_eq!(verdicts, ["passed", "passed", "passed"], "{fault}: {}", ran.out);
    }
}

/// The kubelet needs the unused image of a case only under disk pressure; another case on the node
/// does not find it.
#[test]
fn an_unused_image_is_removed_after_the_case() {
    const REST: &str = r#"
about: A test.
pods: [{metadata: {name: idle}, spec: {containers: [{name: el1, image: 'agnhost:2.52', args: [pause]}]}}]
do: [{when: running(pods.idle), delete: {pod: idle, grace-period: 0s}, wait: 20s, about: waiting for the list}]
until: history.idle.exists(h, h.gone)
expect:
  that: [{what: images, value: "node.status.images.exists(image, image.names.exists(name, name.contains('/unused:')))", is: "#;
    let folder = tempfile::tempdir().unwrap();
    let names = ["a-with-the-image", "b-without-the-image"];
    let arguments = names.map(|name| {
        let has_image = name == names[0];
        // Cases with a configuration of their own run in this order.
        let node =
            if has_image { "node: {unused-image: 32Mi}" } else { "kubelet-config: {imageMinimumGCAge: 3s}" };
        let path = folder.path().join(format!("{name}.yaml"));
        fs::write(&path, format!("name: {name}{REST}{has_image}}}]\n{node}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let ran = run(&[&arguments[0], &arguments[1], "--kubelet", "v1.36"]);
    let verdicts: Vec<_> = ran.verdicts.values().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["passed", "passed"], "{}", ran.out);
}

/// The first pod is too early for the case, that of the next try is not.
#[test]
fn a_case_that_passes_when_it_is_tried_again_is_flaky() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.yaml");
    let case = "
name: late
about: A test.
pods: [{metadata: {name: idle}, spec: {containers: [{name: el1, image: 'agnhost:2.52', args: [pause]}]}}]
do: [{when: running(pods.idle), delete: {pod: idle, grace-period: 0s}, wait: 20s, about: waiting}]
until: history.idle.exists(h, h.gone)
expect:
  that:
    - what: the pod is late
      value: podList.all(pod, timestamp(pod.metadata.creationTimestamp) > timestamp('2026-01-01T00:00:15Z'))
";
    fs::write(&path, case).unwrap();
    for (retries, expected) in [("0", ("failed", 1)), ("1", ("flaky", 0))] {
        let ran = run(&[path.to_str().unwrap(), "--kubelet", "v1.36", "--retries", retries]);
        let (verdict, why) = ran.verdicts.values().next().unwrap();
        assert_eq!((verdict.as_str(), ran.status), expected, "{}", ran.out);
        assert!(retries == "0" || why.contains("try 1 was failed"), "{why}");
    }
    // A defect is there at every try.
    let ran = run(&[
        "sidecars-are-named",
        "--kubelet",
        "v1.36",
        "--defect",
        "annotations-missing",
        "--retries",
        "2",
    ]);
    assert!(ran.status == 1 && ran.out.contains("retrying"), "{}", ran.out);
    assert_eq!(ran.verdicts.values().next().unwrap().0, "failed", "{}", ran.out);
}

/// Cases without a trigger are tried once more: the load of the others may have delayed it.
#[test]
fn a_case_on_a_shared_node_is_retried_alone() {
    const CASE: &str = r#"
about: A test.
pods: [{metadata: {name: quiet}, spec: {containers: [{name: el1, image: 'agnhost:2.52', args: [pause], resources: {limits: {ephemeral-storage: 20Mi}}}]}}]
trigger: evicted(pods.quiet)
timeout: 30s
expect: {evicted: [quiet]}
"#;
    let folder = tempfile::tempdir().unwrap();
    let names = ["first", "second", "third"];
    for name in names {
        fs::write(folder.path().join(format!("{name}.yaml")), format!("name: {name}{CASE}")).unwrap();
    }
    let ran = run(&[folder.path().to_str().unwrap(), "--kubelet", "v1.36"]);
    let events = fs::read_to_string(ran.folder.path().join("results/artifacts/events.jsonl")).unwrap();
    // The cases that make progress before the first retry, and after the last.
    let (mut before, mut after) = (vec![], vec![]);
    let mut retried = vec![];
    for event in events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let case = event["case"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "case-retried" => {
                assert!(event["text"].as_str().unwrap().contains("alone"), "{event}");
                retried.push(case);
            }
            "case-progress" if retried.len() == names.len() => after.push(case),
            "case-progress" if retried.is_empty() => before.push(case),
            _ => {}
        }
    }
    before.dedup();
    after.dedup();
    assert_eq!(retried.len(), names.len(), "{}", ran.out);
    assert!(before.len() > names.len(), "the first tries run side by side: {before:?}");
    assert_eq!(after.len(), names.len(), "each case is retried without the others: {after:?}");
}

#[test]
fn no_case_starts_after_a_failure_on_request() {
    let arguments = ["message", "ranking", "--kubelet", "v1.36", "--defect", "annotations-missing"];
    let all = run(&arguments);
    let some = run(&[&arguments[..], &["--fail-fast"]].concat());
    assert_eq!((all.status, some.status), (1, 1));
    assert!(some.verdicts.len() < all.verdicts.len() && some.out.contains(" not run"), "{}", some.out);
    let failed = some.verdicts.values().filter(|(verdict, _)| verdict == "failed").count();
    assert!(failed >= 1, "{}", some.out);
}

/// The node is gone after the eviction, before the evidence is collected: an error, not a matter of
/// the case, so that a Job tries again on another node.
#[test]
fn evidence_of_a_node_that_is_gone_is_an_error() {
    for (case, at) in [("container-own", "16s"), ("just-above", "20s")] {
        let ran = run(&[case, "--kubelet", "v1.36", "--fault", &format!("node-gone: {{at: {at}}}")]);
        let (verdict, why) = ran.verdicts.values().next().unwrap();
        assert_eq!((verdict.as_str(), ran.status), ("error", 4), "{why}");
        assert!(why.starts_with("failed to reach the API server"), "{why}");
    }
}

/// In the model a container whose program it does not have idles, which proves nothing.
#[test]
fn cases_that_the_model_does_not_run_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign.yaml");
    let case = "name: foreign\nabout: A test.\nuntil: running(pods.web)\nexpect: {evicted: []}\n\
        pods: [{metadata: {name: web}, spec: {containers: [{name: el1, image: 'nginx:1'}]}}]\n";
    fs::write(&path, case).unwrap();
    let ran = run(&[path.to_str().unwrap(), "--kubelet", "v1.36"]);
    let (verdict, why) = ran.verdicts.values().next().unwrap();
    let expected = "a model gives no evidence: the model does not run the image \"nginx:1\"";
    assert_eq!((verdict.as_str(), why.as_str()), ("skipped", expected), "{}", ran.out);
}

/// Progress is not observed while the API does not answer: the outage does not count as the time
/// without progress after which a case ends, which is 40 s.
#[test]
fn an_outage_does_not_count_as_time_without_progress() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("outages")).unwrap();
    let path = folder.path().join("outages/slow.yaml");
    let case = r#"name: slow
about: A pod that ends after 50 s, while the API does not answer for 20 s.
faults: [{api-error: {at: 5s, for: 20s, code: 503}}]
pods: [{metadata: {name: idle}, spec: {restartPolicy: Never, containers: [{name: el1, image: 'agnhost:2.52', command: [sleep, "50"]}]}}]
until: pods.idle.status.phase == 'Succeeded'
expect: {that: [{what: phase, value: pods.idle.status.phase, is: Succeeded}]}
"#;
    fs::write(&path, case).unwrap();
    let ran = run(&[path.to_str().unwrap(), "--kubelet", "v1.36"]);
    assert!(ran.verdicts.values().all(|(verdict, _)| verdict == "passed"), "{:#?}", ran.verdicts);
}

/// The pods of a case whose namespace could not be deleted are deleted before the next case: the
/// kubelet counts their evictions, too.
#[test]
fn pods_of_an_earlier_case_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rest: &str| {
        fs::create_dir_all(folder.path().join("leftovers")).unwrap();
        let path = folder.path().join(format!("leftovers/{name}.yaml"));
        fs::write(&path, format!("name: {name}\nabout: A test.\n{rest}")).unwrap();
    };
    write(
        "first",
        r#"faults: [{api-error: {at: 5s, for: 100s, code: 503, resource: namespaces}}]
pods: [{metadata: {name: late}, spec: {restartPolicy: Never, containers: [
  {name: el1, image: 'agnhost:2.52', command: [sh, -c, "sleep 75; dd if=/dev/zero of=/f bs=1M count=40; sleep infinity"], resources: {limits: {ephemeral-storage: 20Mi}}}]}}]
until: "t > 8.0"
expect: {evicted: []}
"#,
    );
    write(
        "second",
        r#"pods: [{metadata: {name: idle}, spec: {restartPolicy: Never, containers: [{name: el1, image: 'agnhost:2.52', command: [sleep, "100"]}]}}]
until: pods.idle.status.phase == 'Succeeded'
timeout: 120s
expect: {evicted: [], that: [{what: evictions, value: counted, is: {}}]}
"#,
    );
    let ran = run(&[folder.path().to_str().unwrap(), "--kubelet", "v1.36"]);
    let verdict = |name: &str| ran.verdicts.iter().find(|((case, _), _)| case == name).unwrap().1.clone();
    assert_eq!(verdict("first").0, "error", "{:?}", verdict("first"));
    assert_eq!(verdict("second").0, "passed", "{:?}", verdict("second"));
}

/// A case must not pass without the evidence that the fault removed.
#[test]
fn missing_evidence_is_inconclusive() {
    let verdict = |fault: &str, case: &str| {
        let ran = run(&["--kubelet", "v1.31", "--kubelet", "v1.32", "--focus", case, "--fault", fault]);
        ran.verdicts.into_values().map(|(verdict, _)| verdict).collect::<Vec<_>>()
    };
    let unsure = ["inconclusive", "inconclusive"];
    assert_eq!(verdict("event-lost: {}", "three-witnesses-agree"), unsure);
    assert_eq!(verdict("stats-missing: {}", "init-container-is-named"), unsure);
    // The kubelet evicts pods that it does not measure first, also pods of controllers.
    assert_eq!(verdict("stats-missing: {}", "job-pod-failure-policy-sees-disruption"), unsure);
    assert_eq!(verdict("stats-missing: {at: 8s}", "burstable-under-request-survives"), unsure);
    assert_eq!(verdict("oom-kill: {at: 3s}", "regular-containers-are-named"), unsure);
    assert_eq!(verdict("node-gone: {at: 3s}", "sidecars-are-named"), ["error", "error"]);
    assert_eq!(verdict("stats-missing: {}", "summary-lists-sidecars"), ["failed", "failed"]);
}

#[test]
fn runs_with_the_same_seed_are_identical() {
    assert_identical(&ALL_CASES, &BaselineRun::of_all_cases());
    // Two kubelets at a time.
    let message = || BaselineRun::new(&[&["message"][..], &KUBELETS].concat());
    assert_identical(&message(), &message());
}

fn assert_identical(one: &BaselineRun, other: &BaselineRun) {
    assert_ne!(one.run, other.run, "a run's id is its own");
    let (ours, theirs) = (&one.files, &other.files);
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (file, text) in ours {
        assert!(*text == theirs[file], "{file} differs:\n{}", first_difference(text, &theirs[file]));
    }
    assert!(ours.len() > 100, "{} files", ours.len());
}

/// Returns every file of a run without the run's ID and real start.
fn files(ran: &Ran) -> BTreeMap<String, String> {
    fn collect(folder: &Path, top: &Path, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, top, all);
            } else {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                all.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::from([("stdout".to_owned(), ran.out.clone())]);
    let top = ran.folder.path().join("results");
    let started = fs::read_to_string(top.join("artifacts/events.jsonl")).unwrap();
    let started: Value = serde_json::from_str(started.lines().next().unwrap()).unwrap();
    let second = started["realStart"].as_str().unwrap().trim_end_matches('Z').to_owned();
    let unix_time = Regex::new("\"timestamp\": [0-9]+").unwrap();
    let without_time = |text: &str| unix_time.replace(&text.replace(&second, "START"), "START").into_owned();
    collect(&top, &top, &mut all);
    all.values_mut().for_each(|text| *text = without_time(&text.replace(&ran.run, "RUN")));
    all
}

fn first_difference(one: &str, other: &str) -> String {
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    differ.map_or("one is longer".to_owned(), |(one, other)| format!("{one}\n{other}"))
}
