//! Reading of case files and folders, and the displayed errors of wrong ones. The checkers test the
//! mistakes that they find.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::fixtures::{GOOD, built_in, errors_of_changes};
use crate::schema::Case;

#[test]
fn locates_the_pods_of_a_case() {
    let case = parse("suite", "suite/good.yaml", "good.yaml", GOOD.as_bytes()).unwrap();
    assert_eq!((case.id(), case.pod_lines()), ("suite/good".to_owned(), vec![8]));
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
        ("an action that is false", "expect:\n", "do:\n  - {wait: 1s, drain: false}\nexpect:\n"),
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
    const BUILT_IN: &[BuiltInCase] = &[built_in("one/good.yaml", GOOD)];
    assert_eq!(load(&Source::BuiltIn(BUILT_IN)).unwrap()[0].path(), None);
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

    failed to read folder: No such file or directory (os error 2)
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

    /// Listing and running an unchecked case does not panic for any amounts.
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
