//! Reading of case files and folders, and the displayed errors of wrong ones. The checkers test the
//! mistakes that they find.

use std::fs;

use proptest::prelude::*;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::*;

const GOOD: &str = "\
name: good
about: It holds.
labels: [Serial, \"Feature:Eviction\"]
upstream: [kubernetes/kubernetes#124938]
kubelet: \">=1.29\"
pressure: {signal: memory.available, ramp: 15s}
pods:
  - metadata: {name: alloc}
    spec:
      initContainers:
        - {name: side, image: agnhost:2.52, restartPolicy: Always}
      containers:
        - name: el1
          image: agnhost:2.52
          args: [stress, --mem-total, $(TOTAL)]
      volumes:
        - {name: data, emptyDir: {}}
expect:
  evicted: [alloc]
  message:
    resource: memory
    containers: {side: {request: \"0\"}, el1: {request: 0, usage: \">=100Mi\"}}
known-bugs:
  - kubelet: \"<1.32\"
    upstream: kubernetes/kubernetes#124938
    message: {containers: {el1: {}}}
";

fn problems(text: &str) -> String {
    parse("suite", "suite/good.yaml", "cases/suite/good.yaml", text.as_bytes())
        .expect_err("an error")
        .to_string()
}

#[test]
fn locates_the_pods_of_a_case() {
    let case = parse("suite", "suite/good.yaml", "good.yaml", GOOD.as_bytes()).unwrap();
    assert_eq!((case.id(), case.pod_lines()), ("suite/good".to_owned(), vec![8]));
}

fn rejection(status: &Status) -> ApiRejection<'_> {
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    ApiRejection {
        message: status.message.as_deref().unwrap_or_default(),
        fields: causes.filter_map(|cause| cause.field.as_deref()).collect(),
    }
}

/// The Status objects are answers of API servers: to strict decoding, validation, an ephemeral
/// container.
#[test]
fn rejections_of_the_api_point_to_lines() {
    let text = GOOD.replace("expect:\n", "ephemeral-containers:\n  - pod: alloc\n    container:\n      name: debug\n      resources: {}\nexpect:\n");
    let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
    assert_eq!(case.ephemeral_container_lines(), [19]);
    let status = |json: serde_json::Value| serde_json::from_value::<Status>(json).unwrap();
    let decoding = status(serde_json::json!({"code": 400, "reason": "BadRequest", "message":
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.containers[0].args\""}));
    let validation = status(serde_json::json!({"code": 422, "reason": "Invalid",
        "message": "Pod \"alloc\" is invalid: [spec.initContainers[0].image: Required value, spec.volumes[0].name: Duplicate value: \"data\"]",
        "details": {"causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.initContainers[0].image"},
            {"reason": "FieldValueDuplicate", "message": "Duplicate value", "field": "spec.volumes[0].name"}]}}));
    let ephemeral = status(serde_json::json!({"code": 422, "reason": "Invalid",
        "message": "Pod \"alloc\" is invalid: spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
        "details": {"causes": [{"field": "spec.ephemeralContainers[0].resources"}]}}));
    let quota =
        status(serde_json::json!({"code": 403, "message": "pods \"alloc\" is forbidden: exceeded quota"}));
    let problems = [
        case.pod_rejection_problem(0, "pod alloc", &rejection(&decoding)),
        case.pod_rejection_problem(0, "pod alloc", &rejection(&validation)),
        case.ephemeral_container_rejection_problem(0, "ephemeral container debug", &rejection(&ephemeral)),
        case.pod_rejection_problem(0, "pod alloc", &rejection(&quota)),
    ];
    insta::assert_snapshot!(problems.map(|problem| problem.to_string()).join("\n\n"));
}

/// An expectation that cannot fail is an error at its line.
#[test]
fn an_expectation_must_be_able_to_fail() {
    let (before, _) = GOOD.split_once("expect:").unwrap();
    let parsed = |expect: &str| {
        let text = format!("{before}{expect}");
        parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).map_err(|error| error.to_string())
    };
    for expect in
        ["expect: {}", "expect: {may-be-evicted: [alloc]}", "expect: {evicted: [], may-be-evicted: [alloc]}"]
    {
        let error = parsed(expect).unwrap_err();
        assert!(error.contains("`expect` states nothing that can fail"), "{error}");
        assert!(error.contains("good.yaml:18:1") && error.contains("state `evicted: []`"), "{error}");
    }
    for expect in ["expect: {evicted: []}", "expect: {that: [{what: a, value: size(events) > 0}]}"] {
        assert!(parsed(expect).is_ok(), "{expect}");
    }
}

/// A case that parses is listed, whatever its check would find; a file that does not parse is not.
#[test]
fn reading_and_checking_are_two_steps() {
    let root = tempfile::tempdir().unwrap();
    let suite = root.path().join("suite");
    fs::create_dir(&suite).unwrap();
    let wrong = GOOD
        .replace("expect:\n", "until: nodes.size() >\nexpect:\n")
        .replace("containers:\n        - name: el1", "containers:\n        - nam: el1");
    fs::write(suite.join("good.yaml"), wrong).unwrap();
    let read = || CaseFiles::read(&Source::Dir(root.path().to_owned()));
    let names: Vec<_> = read().parsed().unwrap().iter().map(|case| case.id()).collect();
    assert_eq!(names, ["suite/good"]);
    let errors = read().checked().unwrap_err().to_string();
    assert!(errors.contains("invalid CEL expression \"nodes.size() >\""), "{errors}");
    assert!(errors.contains("good.yaml:18:8") && errors.contains("the container has no name"), "{errors}");
    fs::write(suite.join("bad.yaml"), GOOD.replace("about:", "abuot:")).unwrap();
    let errors = read().parsed().unwrap_err().to_string();
    assert!(errors.contains("unknown key `abuot`") && errors.contains("bad.yaml:2:1"), "{errors}");
    let errors = read().checked().unwrap_err().to_string();
    assert!(errors.contains("unknown key `abuot`") && errors.contains("invalid CEL expression"), "{errors}");
}

/// Listing does not check a case.
#[test]
fn a_case_with_extreme_amounts_is_listed() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("suite")).unwrap();
    let more = "terminationGracePeriodSeconds: 18446744073709551615\n      volumes:\n";
    let extreme = GOOD.replace("volumes:\n", more).replace("expect:\n", "timeout: 7days\nexpect:\n");
    fs::write(root.path().join("suite/good.yaml"), extreme).unwrap();
    let cases = CaseFiles::read(&Source::Dir(root.path().to_owned())).parsed().unwrap();
    let listed = ListedCase::from(&*cases[0]);
    assert_eq!(listed.deadline_seconds, 7 * 24 * 3600);
}

/// The origin of a case does not follow from the text of its path.
#[test]
fn a_path_may_look_like_another_origin() {
    for path in ["(built-in) suite/good.yaml", "<stdin>"] {
        let case = parse("suite", "suite/good.yaml", path, GOOD.as_bytes()).unwrap();
        assert_eq!((case.file.as_str(), case.path()), ("suite/good.yaml", Some(path)));
    }
}

#[test]
fn an_empty_file_has_no_position() {
    for text in ["", "\n\n", "# name: a\n"] {
        let error = parse("s", "s/a.yaml", "a.yaml", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("the file is empty: write a case with `evictlab new NAME`"), "{error}");
    }
}

/// Returns the errors of the valid case with one change per row: a name, a text of the case and its
/// replacement.
pub(crate) fn errors_of_changes(rows: &[(&str, &str, &str)]) -> String {
    let errors_of = |(name, valid, invalid): &(&str, &str, &str)| {
        let text = GOOD.replacen(valid, invalid, 1);
        assert_ne!(text, GOOD, "{name}");
        format!("## {name}\n{}\n", problems(&text))
    };
    rows.iter().map(errors_of).collect::<Vec<_>>().join("\n")
}

/// Mistakes of syntax and of values. Each row breaks the valid case in one place.
#[test]
fn errors_point_to_the_mistake() {
    insta::assert_snapshot!(errors_of_changes(&[
        ("unknown key", "ramp:", "rammp:"),
        ("a tab", "about:", "\tabout:"),
        ("unknown key, nothing near", "ramp:", "xyzzy:"),
        ("unknown key at the top", "about:", "abuot:"),
        ("unknown value", "memory.available", "memory.avail"),
        ("missing key", "about: It holds.\n", ""),
        ("key twice", "about:", "name: good\nabout:"),
        ("wrong type", "labels: [Serial, \"Feature:Eviction\"]", "labels: Serial"),
        ("bad duration", "15s", "15 parsecs"),
        ("a duration over the maximum", "ramp: 15s", "ramp: 8days"),
        ("bad distance", "ramp: 15s", "distance: 200MB"),
        ("bad bound", ">=100Mi", "100Mi"),
        ("bad request", "request: \"0\"", "request: lots"),
        ("bad kubelet", "<1.32", "1.32"),
        ("bad upstream", "upstream: [kubernetes/kubernetes#124938]", "upstream: [124938]"),
        ("bad name", "name: good", "name: Good Case"),
        (
            "an unknown file system",
            "expect:\n",
            "node: {file-systems: {imagefs: 8Gi, containerfs: rootfs}}\nexpect:\n",
        ),
        ("file systems without a size", "expect:\n", "node: {file-systems: {}}\nexpect:\n"),
        ("invalid YAML", "evicted: [alloc]", "evicted: [alloc"),
        ("bound without quotes", "\">=100Mi\"", ">=100Mi"),
        ("range without quotes", "\">=1.29\"", ">=1.29"),
        ("colon without quotes", "It holds.", "It holds: always."),
        ("tab", "  - metadata", "\t- metadata"),
        ("two documents", "expect:\n", "---\nexpect:\n"),
        ("two actions in a step", "expect:\n", "do:\n  - {evict: alloc, drain: true}\nexpect:\n"),
        (
            "a patch of an unknown kind",
            "expect:\n",
            "do:\n  - patch: {kind: Deploymnt, name: web, patch: {a: 1}}\nexpect:\n",
        ),
        (
            "a deletion of two objects",
            "expect:\n",
            "do:\n  - delete: {pod: alloc, kind: Pod, name: alloc}\nexpect:\n",
        ),
        (
            "a grace period of no pod",
            "expect:\n",
            "objects:\n  - {apiVersion: v1, kind: Service, metadata: {name: web}}\ndo:\n  - delete: {kind: Service, name: web, grace-period: 1s}\nexpect:\n",
        ),
        (
            "a resize of the storage",
            "expect:\n",
            "do:\n  - resize: {pod: alloc, requests: {ephemeral-storage: 1Mi}}\nexpect:\n",
        ),
        (
            "a misspelt request of a resize",
            "expect:\n",
            "do:\n  - resize: {pod: alloc, requests: {memory: allocateable}}\nexpect:\n",
        ),
        ("a bad alternative", "<1.32", "<1.32 || 1.34"),
        ("invalid regular expression", "expect:\n", "expect:\n  that: [{what: x, value: t, matches: '('}]\n"),
        ("not a pod", "  - metadata: {name: alloc}\n", "  - alloc\n  - metadata: {name: alloc}\n"),
        ("a second case", "known-bugs:\n", "---\nname: other\n"),
        ("a key without a value", "about: It holds.", "about:"),
        ("a signal without a value", "signal: memory.available", "signal:"),
        ("a list as a word", "expect:\n", "placed: [x]\nexpect:\n"),
        ("a list as a resource", "resource: memory", "resource: [memory]"),
        ("an alias in its anchor", "  evicted: [alloc]\n", "  evicted: &a [*a]\n"),
        ("two faults in an entry", "expect:\n", "faults: [{event-lost: {}, foo: {}}]\nexpect:\n"),
    ]));
}

/// Steps can change what the case states or has created before.
#[test]
fn steps_change_and_delete_objects() {
    let steps = "\
objects:
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}
do:
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: late}}
  - {patch: {kind: Deployment, name: web, patch: {spec: {replicas: 3}}}, answer: scaled}
  - delete: {kind: ConfigMap, name: late}
  - delete: {kind: Pod, name: alloc, grace-period: 1s}
  - {restart-kubelet: true, about: restarting the kubelet}
";
    let text = GOOD.replace("expect:\n", &format!("{steps}expect:\n"));
    let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
    let fields: Vec<_> =
        case.case.steps.iter().filter_map(|step| Some(step.action.as_ref()?.field())).collect();
    assert_eq!(fields, ["create", "patch", "delete", "delete", "restart-kubelet"]);
    assert_eq!(case.case.node_changes().collect::<Vec<_>>(), [&crate::NodeChange::RestartKubelet]);
}

/// A pod with a generated name is known by the name without the hyphen; commands run in it.
#[test]
fn a_generated_name_has_a_name_in_the_case() {
    let step = "do:\n  - {exec: {pod: alloc, container: el1, command: [ls]}, answer: listed}\n";
    let text = GOOD.replace("{name: alloc}", "{generateName: alloc-}");
    let text = text.replace("expect:\n", &format!("{step}expect:\n"));
    let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
    assert_eq!(crate::case_name(&case.case.pods[0]), Some("alloc"));
}

#[test]
fn reports_the_problems_of_all_files() {
    let root = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &[u8]| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("one/good.yaml", GOOD.as_bytes());
    write("two/good.yml", GOOD.as_bytes());
    write("two/bad.yaml", b"name: bad\nabout: [\n");
    write("two/binary.yaml", b"name: binary\nabout: \xffit");
    write("two/notes.md", b"not a case");
    write("two/.hidden.yaml", b"not a case");
    let errors = load(&Source::Dir(root.path().to_owned())).unwrap_err().to_string();
    insta::assert_snapshot!(errors.replace(root.path().to_str().unwrap(), "cases"));

    for file in ["two/bad.yaml", "two/binary.yaml", "two/good.yml"] {
        fs::remove_file(root.path().join(file)).unwrap();
    }
    let cases = load(&Source::Dir(root.path().to_owned())).unwrap();
    assert_eq!(cases.iter().map(|case| case.file.as_str()).collect::<Vec<_>>(), ["one/good.yaml"]);
    let [suite, file] =
        ["one", "one/good.yaml"].map(|path| load_paths(&[root.path().join(path)]).unwrap().len());
    assert_eq!((suite, file), (1, 1));
    assert_eq!(cases[0].path(), root.path().join("one/good.yaml").to_str());
    let built_in = load(&Source::BuiltIn(&[("one/good.yaml", GOOD)])).unwrap();
    assert_eq!(built_in[0].path(), None);
}

#[test]
fn a_folder_without_suites_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let [empty, missing] = [root.path().to_owned(), root.path().join("missing")].map(|dir| {
        load(&Source::Dir(dir)).unwrap_err().to_string().replace(root.path().to_str().unwrap(), "cases")
    });
    insta::assert_snapshot!(format!("{empty}\n\n{missing}"), @r"
    no suites found: a suite is a folder of case files, such as message/a-case.yaml
      --> cases

    1 problem in 1 file

    failed to read: No such file or directory (os error 2)
      --> cases/missing

    1 problem in 1 file
    ");
}

proptest! {
    /// Any bytes give a result, and errors can be displayed.
    #[test]
    fn loads_any_bytes_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse("s", "s/a.yaml", "a.yaml", &bytes).map_err(|errors| errors.to_string());
    }

    /// What lists and runs read of a case that is not checked.
    #[test]
    fn reads_any_amounts_without_panic(
        seconds in any::<u64>(),
        replicas in any::<u64>(),
        timeout in "[0-9]{1,22}(ns|s|days|years)",
    ) {
        let text = format!(
            "{{name: a, about: b, expect: {{}}, timeout: {timeout}, do: [{{wait: {timeout}}}], objects: [{{kind: Deployment, \
            spec: {{replicas: {replicas}, template: {{spec: {{terminationGracePeriodSeconds: {seconds}, \
            containers: [{{name: c}}, {{name: d}}]}}}}}}}}]}}"
        );
        if let Ok(case) = serde_saphyr::from_str::<Case>(&text) {
            prop_assert!(case.deadline() <= std::time::Duration::from_secs(7 * 24 * 3600));
            prop_assert_eq!(case.pod_specs().len(), 1);
            prop_assert!(case.container_count() <= 220);
        }
    }

    #[test]
    fn loads_any_text_without_panic(text in ".{0,200}") {
        let _ = parse("s", "s/a.yaml", "a.yaml", text.as_bytes()).map_err(|errors| errors.to_string());
    }

    /// The same for a valid case in which some bytes are replaced, as by a slip or a bad merge.
    #[test]
    fn loads_damaged_cases_without_panic(at in 0..GOOD.len(), cut in 0..40usize, with in "[ -~\n\t\u{e9}\u{4e2d}]{0,8}") {
        let end = (at + cut).min(GOOD.len());
        let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
        let _ = parse("s", "s/good.yaml", "good.yaml", text.as_bytes()).map_err(|errors| errors.to_string());
    }
}

/// Names that no kubelet and no API has, with the place of the name and a suggestion.
#[test]
fn misspelt_fields_and_metrics_are_reported_at_their_place() {
    let job = "objects: [{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: agnhost:2.52}]}}}}, \
               {apiVersion: v1, kind: ConfigMap, metadata: {name: map}}]\n";
    let with = |more: &str| GOOD.replace("expect:\n", &format!("{job}{more}\nexpect:\n"));
    let rows = [
        ("kubelet-config: {evictionHrad: {}}", "evictionHrad", "evictionHard"),
        ("kubelet-config: {memorySwap: {swapBehaviour: NoSwap}}", "swapBehaviour", "swapBehavior"),
        ("do: [{configure: {evictionSoft: {memory.availble: 1Mi}}}]", "memory.availble", "memory.available"),
        ("until: size(pods.alloc.spec.contaners) == 1", "contaners", "containers"),
        ("until: has(pods.alloc.status.mesage)", "mesage", "message"),
        (
            "until: podList.exists(p, p.spec.containers.exists(c, c.resources.limts.memory == '1'))",
            "limts",
            "limits",
        ),
        ("until: >-\n  t > 5\n  && node.status.conditions.exists(c, c.typ == 'Ready')", "typ", "type"),
        ("until: condition(pods.alloc, 'Ready').reson == 'x'", "reson", "reason"),
        (
            "until: history.alloc.map(h, h.conditions.Ready).exists(c, c.statuss == 'True')",
            "statuss",
            "status",
        ),
        ("until: stats.alloc.el1.rootfs.usedByte > 5", "usedByte", "usedBytes"),
        ("until: samples[samples.size() - 1].pods.exists(p, p.podRef.nmae == 'a')", "nmae", "name"),
        ("until: objects.job.status.faild == 1", "faild", "failed"),
        ("until: \"objects['job'].status.faild == 1\"", "faild", "failed"),
        ("until: \"{'a': pods.alloc.status.mesage}.size() == 1\"", "mesage", "message"),
        (
            "until: samples[0].node.systemContainers[0].memory.workingSet == 1",
            "workingSet",
            "workingSetBytes",
        ),
        ("until: configz['evictionHrd'].size() == 1", "evictionHrd", "evictionHard"),
        ("until: metrics.kubelet_evictoins.size() == 1", "kubelet_evictoins", "kubelet_evictions"),
        ("until: evictions.map(e, e.containers.el1.usge)[0] == 1", "usge", "usage"),
    ];
    for (more, misspelt, near) in rows {
        let text = with(more);
        let found = problems(&text);
        let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains(misspelt)).unwrap();
        let at = format!("good.yaml:{}:{}\n", index + 1, line.find(misspelt).unwrap() + 1);
        assert!(found.contains(&at) && found.contains(&format!("did you mean `{near}`?")), "{more}: {found}");
        assert!(found.contains("1 problem in 1 file"), "{found}");
    }
    for valid in [
        "until: podList.all(p, p.metadata.labels.anything == 'x' && p.status.resources.limits.cpu == '1')",
        "until: objects.job.metadata.annotations['a/b'] == '1' && objects.map.data.any == '1'",
        "until: metrics.go_goroutines.exists(m, m.labels.any == '1') && metrics.kubelet_pod_start_duration_seconds_sum.size() > 0",
        "until: podList.map(p, [p.status.phase, p.status.reason]).filter(pair, pair[0] == 'Failed').size() == 1",
        "kubelet-config: {evictionMinimumReclaim: {nodefs.available: 10Mi}, mergeDefaultEvictionSettings: true}",
    ] {
        assert!(parse("suite", "suite/good.yaml", "good.yaml", with(valid).as_bytes()).is_ok(), "{valid}");
    }
}
