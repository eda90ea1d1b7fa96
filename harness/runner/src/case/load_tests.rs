//! What a person sees when a case file is wrong.

use std::fs;

use proptest::prelude::*;

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
        .expect_err("a problem")
        .to_string()
}

#[test]
fn a_good_case_knows_where_its_pods_are() {
    let case = parse("suite", "suite/good.yaml", "good.yaml", GOOD.as_bytes()).unwrap();
    assert_eq!((case.id(), case.pod_lines()), ("suite/good".to_owned(), vec![8]));
}

/// The Status objects are what API servers answer: strict decoding, validation, an ephemeral container.
#[test]
fn a_refusal_of_the_api_is_shown_with_its_lines() {
    let text = GOOD.replace("expect:\n", "ephemeral-containers:\n  - pod: alloc\n    container:\n      name: debug\n      resources: {}\nexpect:\n");
    let case = parse("suite", "suite/good.yaml", "good.yaml", text.as_bytes()).unwrap();
    assert_eq!(case.ephemeral_container_lines(), [19]);
    let status = |json: serde_json::Value| serde_json::from_value::<kube::core::Status>(json).unwrap();
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
    let shown = [
        case.show_refused_pod(0, "pod alloc", &decoding),
        case.show_refused_pod(0, "pod alloc", &validation),
        case.show_refused_ephemeral_container(0, "ephemeral container debug", &ephemeral),
        case.show_refused_pod(0, "pod alloc", &quota),
    ];
    insta::assert_snapshot!(shown.map(|problem| problem.to_string()).join("\n\n"));
}

/// Each row breaks the good case in one place.
#[test]
fn every_mistake_is_shown_where_it_is() {
    let rows = [
        ("unknown key", "ramp:", "rammp:"),
        ("unknown key, nothing near", "ramp:", "xyzzy:"),
        ("unknown key at the top", "about:", "abuot:"),
        ("unknown value", "memory.available", "memory.avail"),
        ("missing key", "about: It holds.\n", ""),
        ("key twice", "about:", "name: good\nabout:"),
        ("wrong type", "labels: [Serial, \"Feature:Eviction\"]", "labels: Serial"),
        ("no label", "Feature:Eviction", "Feature/Eviction"),
        ("bad duration", "15s", "15 parsecs"),
        ("bad distance", "ramp: 15s", "distance: 200MB"),
        ("no distance", "ramp: 15s", "distance: 0Mi"),
        ("bad bound", ">=100Mi", "100Mi"),
        ("bad request", "request: \"0\"", "request: lots"),
        ("bad kubelet", "<1.32", "1.32"),
        ("bad upstream", "upstream: [kubernetes/kubernetes#124938]", "upstream: [124938]"),
        ("bad name", "name: good", "name: Good Case"),
        ("name of another file", "name: good", "name: better"),
        ("no such pod", "evicted: [alloc]", "evicted: [aloc]"),
        ("nobody is evicted", "evicted: [alloc]", "evicted: []"),
        ("no such container", "containers: {side:", "containers: {sidecar:"),
        ("no such container in a known bug", "{containers: {el1: {}}}", "{containers: {xx: {}}}"),
        ("no such volume", "resource: memory\n", "emptydir-limit: {volume: dat, limit: 1Mi}\n"),
        ("another resource", "resource: memory", "resource: pids"),
        ("a known bug that says nothing", "    message: {containers: {el1: {}}}\n", ""),
        (
            "set by pressure",
            "expect:\n",
            "kubelet-config: {evictionHard: {memory.available: 1Gi, pid.available: 5%}}\nexpect:\n",
        ),
        ("no map", "expect:\n", "kubelet-config: {evictionHard: memory.available<1Gi}\nexpect:\n"),
        ("a hard threshold beside a hard one", "ramp: 15s", "hard-distance: 1Gi"),
        (
            "a hard threshold before the soft one",
            "ramp: 15s",
            "distance: 1Gi, hard-distance: 1Gi, soft-grace: 1s",
        ),
        ("others cross alone", "ramp: 15s", "distance: 100Mi, others: 100Mi"),
        ("a soft reservation", "ramp: 15s", "by: kube-reserved, soft-grace: 1s"),
        ("pod without name", "metadata: {name: alloc}", "metadata: {}"),
        ("another kind", "- metadata: {name: alloc}", "- kind: Deployment\n    metadata: {name: alloc}"),
        ("container twice", "name: side,", "name: el1,"),
        ("no containers", "      containers:\n", "      contaners:\n"),
        ("nothing grows", "$(TOTAL)", "1Gi"),
        ("two grow", "restartPolicy: Always", "command: [sh, -c, \"echo $TOTAL_BYTES\"]"),
        ("grows without pressure", "pressure: {signal: memory.available, ramp: 15s}\n", ""),
        ("no YAML", "evicted: [alloc]", "evicted: [alloc"),
        ("bound without quotes", "\">=100Mi\"", ">=100Mi"),
        ("range without quotes", "\">=1.29\"", ">=1.29"),
        ("colon without quotes", "It holds.", "It holds: always."),
        ("tab", "  - metadata", "\t- metadata"),
        ("two documents", "expect:\n", "---\nexpect:\n"),
        ("no CEL", "expect:\n", "until: pods.alloc ==\nexpect:\n"),
        ("unknown variable", "expect:\n", "until: pod.alloc.status.phase == 'Failed'\nexpect:\n"),
        ("two things in a step", "expect:\n", "do:\n  - {evict: alloc, drain: true}\nexpect:\n"),
        ("a step that does nothing", "expect:\n", "do:\n  - {about: nothing}\nexpect:\n"),
        ("a step with no such pod", "expect:\n", "do:\n  - {evict: aloc}\nexpect:\n"),
        ("a taint of somebody else", "expect:\n", "do:\n  - {untaint: example.com/x}\nexpect:\n"),
        ("no regular expression", "expect:\n", "expect:\n  that: [{what: x, value: t, matches: '('}]\n"),
        (
            "a fact twice",
            "expect:\n",
            "expect:\n  that: [{what: x, value: t, at-least: 1}, {what: x, value: t, at-most: 2}]\n",
        ),
        ("sometimes of nothing", "    message: {containers: {el1: {}}}\n", "    sometimes: true\n"),
        ("not a pod", "  - metadata: {name: alloc}\n", "  - alloc\n  - metadata: {name: alloc}\n"),
    ];
    let all: Vec<_> = rows
        .into_iter()
        .map(|(name, right, wrong)| {
            let text = GOOD.replacen(right, wrong, 1);
            assert_ne!(text, GOOD, "{name}");
            format!("## {name}\n{}\n", problems(&text))
        })
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_problems_of_all_files_come_together() {
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
fn a_folder_without_suites_says_so() {
    let root = tempfile::tempdir().unwrap();
    let [empty, missing] = [root.path().to_owned(), root.path().join("missing")].map(|dir| {
        load(&Source::Dir(dir)).unwrap_err().to_string().replace(root.path().to_str().unwrap(), "cases")
    });
    insta::assert_snapshot!(format!("{empty}\n\n{missing}"), @r"
    no suites here: a suite is a folder in it with case files, such as message/a-case.yaml
      --> cases

    1 problem in 1 file

    cannot be read: No such file or directory (os error 2)
      --> cases/missing

    1 problem in 1 file
    ");
}

proptest! {
    /// Whatever is in a file, the loader answers, and the answer can be shown.
    #[test]
    fn no_bytes_break_the_loader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse("s", "s/a.yaml", "a.yaml", &bytes).map_err(|errors| errors.to_string());
    }

    #[test]
    fn no_text_breaks_the_loader(text in ".{0,200}") {
        let _ = parse("s", "s/a.yaml", "a.yaml", text.as_bytes()).map_err(|errors| errors.to_string());
    }

    /// The same near a real case: some bytes of it replaced, as a slip or a bad merge does.
    #[test]
    fn no_damage_breaks_the_loader(at in 0..GOOD.len(), cut in 0..40usize, with in "[ -~\n\t\u{e9}\u{4e2d}]{0,8}") {
        let end = (at + cut).min(GOOD.len());
        let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
        let _ = parse("s", "s/good.yaml", "good.yaml", text.as_bytes()).map_err(|errors| errors.to_string());
    }
}
