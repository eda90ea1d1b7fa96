//! `evictlab list`, `lint` and `schema`

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use evictlab_case::{BuiltInCase, CaseFiles, Source};
use evictlab_explain::BUG_PATTERNS;
use tempfile::TempDir;

use crate::documents;

const CASE: &str = "\
name: mine
about: It is mine.
labels: [Slow]
pods:
  - metadata: {name: a}
    spec: {containers: [{name: c, image: agnhost:2.52}]}
expect: {evicted: []}
";

/// Returns an empty directory.
fn elsewhere() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs `evictlab` in a directory: exit status, standard output, standard error.
fn evictlab(dir: &TempDir, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    let output = command.current_dir(dir).env_remove("EVICTLAB_CASES").args(args).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), out, err)
}

fn write(dir: &TempDir, file: &str, text: &str) {
    let path = dir.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs `evictlab` with a standard input.
fn piped(dir: &TempDir, args: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), out, err)
}

/// They are read from JSON that the build makes of the files.
#[test]
fn built_in_cases_are_those_of_the_files() {
    let without_text = |file: &BuiltInCase| BuiltInCase { text: "?", ..*file };
    let built_in = cases::FILES.iter().map(without_text).collect::<Vec<_>>().leak();
    let built_in = CaseFiles::read(&Source::BuiltIn(built_in)).parsed().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let files = CaseFiles::read(&Source::Dir(files)).parsed().unwrap();
    assert_eq!(built_in.len(), files.len());
    for (built_in, file) in built_in.iter().zip(&files) {
        assert_eq!(format!("{:?}", built_in.case), format!("{:?}", file.case), "{}", file.file);
    }
}

#[test]
fn bugs_that_explain_reports_have_built_in_cases_about_their_issue() {
    let built_in = CaseFiles::read(&Source::BuiltIn(cases::FILES)).parsed().unwrap();
    for bug in BUG_PATTERNS {
        let case = built_in.iter().find(|parsed| parsed.case.name.as_str() == bug.case);
        let case = case.unwrap_or_else(|| panic!("no built-in case is named {}", bug.case));
        let issues: Vec<String> = case.case.upstream.iter().map(ToString::to_string).collect();
        if let Some(issue) = bug.upstream {
            assert!(
                issues.iter().any(|listed| listed == issue),
                "{} lists {issues:?}, not {issue}",
                bug.case
            );
        }
    }
}

#[test]
fn a_case_comes_from_standard_input() {
    let dir = elsewhere();
    let (status, out, err) = piped(&dir, &["lint", "-"], CASE);
    assert_eq!(
        (status, out.as_str()),
        (0, "1 case in 1 suite: no problems\nrun: evictlab run - < case.yaml\n"),
        "{err}"
    );
    // It is read once.
    let (status, out, err) = piped(&dir, &["list", "-", "-"], CASE);
    assert!(status == 0 && out.contains("stdin") && out.contains("1 case"), "{out}{err}");
    let (status, out, err) = piped(&dir, &["run", "-", "--output-dir", "out"], CASE);
    assert!(status == 0 && out.contains("1 passed"), "{out}{err}");
    let events = fs::read_to_string(dir.path().join("out/artifacts/events.jsonl")).unwrap();
    assert!(events.contains("\"file\":\"stdin/mine.yaml\",\"path\":\"-\""), "{events}");
    // The shell does not wait for input if a hint is pasted.
    assert!(out.contains("`evictlab run - --backend kind < case.yaml`"), "{out}");
    let bisect = ["bisect", "-", "--good", "v1.32", "--bad", "v1.31", "--output-dir", "search"];
    let (_, out, _) = piped(&dir, &bisect, CASE);
    let commands: Vec<&str> = out.lines().filter(|line| line.contains("evictlab run")).collect();
    assert!(commands.iter().all(|line| line.contains("< case.yaml")), "{out}");
    // With other cases.
    let arguments = ["list", "-", "message/sidecars-are-named"];
    let (status, out, err) = piped(&dir, &arguments, CASE);
    assert!(status == 0 && out.contains("It is mine.") && out.contains("2 cases"), "{out}{err}");
}

/// A step changes the configuration that the kubelet has: it keeps the other entries of a map, and
/// the fields of earlier steps.
#[test]
fn a_step_keeps_what_it_does_not_configure() {
    let dir = elsewhere();
    let case = CASE.replace(
        "expect:",
        "kubelet-config: {evictionHard: {memory.available: 64Mi}}\n\
         do:\n\
         - {configure: {evictionHard: {nodefs.available: 1Mi}}}\n\
         - {configure: {maxPods: 50}}\n\
         expect:",
    );
    let (status, out, err) = piped(&dir, &["run", "-", "--output-dir", "out"], &case);
    assert!(status == 0 && out.contains("1 passed"), "{out}{err}");
    let kubelets = fs::read_dir(dir.path().join("out/artifacts/stdin/mine")).unwrap();
    let kubelet = kubelets.map(|entry| entry.unwrap().path()).next().unwrap();
    let facts = fs::read_to_string(kubelet.join("facts.yaml")).unwrap();
    for entry in ["memory.available: 64Mi\n", "nodefs.available: 1Mi\n", "maxPods: 50\n"] {
        assert!(facts.contains(entry), "{facts}");
    }
}

#[test]
fn errors_of_standard_input_have_a_position() {
    let dir = elsewhere();
    let unknown = CASE.replace("labels:", "lables:");
    let unchecked = CASE.replace("expect:", "until: size(evnts) > 0\nexpect:");
    for (text, position, message) in [
        (unknown.as_str(), "<stdin>:3:1", "unknown key `lables`: did you mean `labels`?"),
        (&unchecked, "<stdin>:7:8", "unknown variable `evnts`"),
        ("", "<stdin>", "the file is empty"),
        ("name: [", "<stdin>:1:", ""),
    ] {
        for (command, expected) in [("lint", 1), ("run", 2)] {
            let (status, _, err) = piped(&dir, &[command, "-"], text);
            assert_eq!(status, expected, "{command} {text:?}: {err}");
            assert!(err.contains(position), "{command} {text:?}: {err}");
            assert!(message.split(": ").all(|part| err.contains(part)), "{command} {text:?}: {err}");
        }
    }
    let (_, out, _) = piped(&dir, &["lint", "-", "--json"], &unknown);
    let printed = documents::parse("lint", &out);
    let problem = &printed["problems"][0];
    assert_eq!(
        (&problem["file"], &problem["line"], &problem["column"]),
        (&"<stdin>".into(), &3.into(), &1.into())
    );
}

/// Counts the case files of this repository, as the last line of `evictlab list`.
fn built_in() -> String {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let files = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).count()
    };
    let suites = fs::read_dir(cases).unwrap().map(|entry| files(&entry.unwrap().path()));
    let counts: Vec<_> = suites.filter(|count| *count > 0).collect();
    format!("{} cases in {} suites", counts.iter().sum::<usize>(), counts.len())
}

#[test]
fn finds_the_built_in_suites_in_any_directory() {
    let (status, out, _) = evictlab(&elsewhere(), &["list"]);
    assert!(status == 0 && out.contains("sidecars-are-named"), "{out}");
    assert!(out.ends_with(&format!("{}\n", built_in())), "{out}");
    let (status, out, _) = evictlab(&elsewhere(), &["lint"]);
    assert_eq!((status, out), (0, format!("{}: no problems\n", built_in())));
}

#[test]
fn lint_checks_the_cases_that_run_would_run() {
    let dir = elsewhere();
    write(&dir, "message/mine.yaml", CASE);
    let (status, out, _) = evictlab(&dir, &["list", "message"]);
    assert_eq!(status, 0);
    let listed = out.lines().last().unwrap();
    let (status, out, _) = evictlab(&dir, &["lint", "message"]);
    assert!(status == 0 && out.starts_with(&format!("{listed}: ")), "{listed}: {out}");
    assert!(out.ends_with("run: evictlab run message\n"), "{out}");
    let (status, out, _) = evictlab(&dir, &["lint", "message/"]);
    assert!(status == 0 && out.starts_with("1 case in 1 suite: "), "{out}");
}

/// `list` reads case files; commands that run cases, and `lint`, check them.
#[test]
fn lists_a_case_that_lint_and_run_reject() {
    let dir = elsewhere();
    write(&dir, "mine/mine.yaml", &CASE.replace("expect:", "until: size(evnts) > 0\nexpect:"));
    let (status, out, err) = evictlab(&dir, &["list", "mine/mine.yaml"]);
    assert!(status == 0 && out.contains("It is mine."), "{out}{err}");
    for (command, expected) in [("lint", 1), ("run", 2)] {
        let (status, _, err) = evictlab(&dir, &[command, "mine/mine.yaml"]);
        assert!(status == expected && err.contains("mine.yaml:7:8"), "{command}: {err}");
        assert!(err.contains("unknown variable `evnts`: did you mean `events`?"), "{command}: {err}");
    }
    write(&dir, "mine/mine.yaml", &CASE.replace("labels:", "lables:"));
    let (status, _, err) = evictlab(&dir, &["list", "mine/mine.yaml"]);
    assert!(status == 2 && err.contains("mine.yaml:3:1") && err.contains("unknown key `lables`"), "{err}");
}

#[test]
fn lists_one_line_or_object_per_case() {
    let (_, out, _) =
        evictlab(&elsewhere(), &["list", "message", "--label-filter", "Feature:EphemeralContainers"]);
    let lines: Vec<_> = out.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>()).collect();
    let cases =
        [["message", "ephemeral-container-is-never-named"], ["message", "ephemeral-resources-are-refused"]];
    assert_eq!(lines[1..3], cases);

    let (_, out, _) = evictlab(&elsewhere(), &["list", "--json", "--focus", "sidecars-are-named"]);
    let json = documents::parse("list", &out);
    assert_eq!(json[0]["file"], "message/sidecars-are-named.yaml");
    assert_eq!(json[0]["kubelet"], ">=1.29");
    assert_eq!(json[0]["upstream"][0], "https://github.com/kubernetes/kubernetes/issues/124938");
    assert_eq!(json.as_array().unwrap().len(), 1);
}

/// `./cases` is a source only with the schema; `--cases` and paths always are.
#[test]
fn prefers_own_suites() {
    let dir = elsewhere();
    write(&dir, "cases/own/mine.yaml", CASE);
    let listed = |args: &[&str]| evictlab(&dir, args).1.lines().last().map(str::to_owned);
    let own = Some("1 case in 1 suite".to_owned());
    assert_eq!(listed(&["list"]).as_deref(), Some(built_in().as_str()));
    assert_eq!(listed(&["list", "--cases", "cases"]), own);
    assert_eq!(listed(&["list", "cases/own/mine.yaml"]), own);
    assert_eq!(listed(&["list", "cases/own"]), own);
    write(&dir, "cases/case.schema.json", "{}");
    assert_eq!(listed(&["list"]), own);
}

#[test]
fn reports_problems_with_their_exit_status() {
    let dir = elsewhere();
    write(&dir, "own/mine.yaml", &CASE.replace("labels", "lables"));
    write(&dir, "own/other.yaml", &CASE.replace("name: a", "name: A"));
    let (status, out, err) = evictlab(&dir, &["lint", "own"]);
    assert_eq!((status, out.as_str()), (1, ""));
    insta::assert_snapshot!(err, @r#"
    error: failed to load case files

    unknown key `lables`
     --> own/mine.yaml:3:1
      |
    3 | lables: [Slow]
      | ^^^^^^ did you mean `labels`?

    the case is named `mine`, but its file `other.yaml`
     --> own/other.yaml:1:7
      |
    1 | name: mine
      |       ^^^^ both must be equal

    invalid name "A": must have 1 to 63 lower-case letters, digits and `-`, with a letter or digit at both ends
     --> own/other.yaml:5:22
      |
    5 |   - metadata: {name: A}
      |                      ^

    3 problems in 2 files
    "#);
    let rows: [(&[&str], &str); 5] = [
        (&["list", "own"], "did you mean `labels`?"),
        (&["list", "mesage"], "did you mean `message`?"),
        (&["list", "--label-filter", "a &&"], "expected a label at the end of the filter"),
        (&["list", "--focus", "["], "regex parse error"),
        (&["list", "--cases", "nowhere"], "nowhere"),
    ];
    for (args, why) in rows {
        let (status, out, err) = evictlab(&dir, args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(why), "{args:?}: {err}");
    }
}

/// A new case can be checked and run at once; an existing file stays as it is.
#[test]
fn creates_a_case_that_can_be_run() {
    let dir = elsewhere();
    let (status, out, _) = evictlab(&dir, &["new", "mine/my-case"]);
    assert!(status == 0 && out.contains("evictlab run mine/my-case.yaml"), "{out}");
    let (status, out, _) = evictlab(&dir, &["lint", "mine/my-case.yaml"]);
    assert_eq!((status, &*out), (0, "1 case in 1 suite: no problems\nrun: evictlab run mine/my-case.yaml\n"));
    let (status, out, err) =
        evictlab(&dir, &["run", "mine/my-case.yaml", "--kubelet", "v1.36", "--output-dir", "out"]);
    assert_eq!(status, 0, "{out}{err}");

    let (status, _, err) = evictlab(&dir, &["new", "mine/my-case"]);
    assert!(status == 2 && err.contains("the file exists") && err.contains("help: "), "{err}");
    let (status, _, err) = evictlab(&dir, &["new", "my-case"]);
    assert!(status == 2 && err.contains("message/my-case"), "{err}");
}

#[test]
fn prints_the_committed_schema() {
    let (status, out, _) = evictlab(&elsewhere(), &["schema"]);
    assert_eq!((status, out.as_str()), (0, include_str!("../../../../cases/case.schema.json")));
}

#[test]
fn lint_prints_json_with_places() {
    let dir = elsewhere();
    write(&dir, "mine.yaml", CASE);
    write(&dir, "wrong.yaml", &CASE.replace("labels:", "label:").replace("mine", "wrong"));
    let lint = |file: &str| {
        let (status, out, _) = evictlab(&dir, &["lint", "--json", file]);
        (status, documents::parse("lint", &out))
    };
    let (status, json) = lint("mine.yaml");
    assert_eq!((status, &json["cases"], &json["problems"]), (0, &1.into(), &serde_json::json!([])));
    let (status, json) = lint("wrong.yaml");
    let problem = &json["problems"][0];
    let place = (&problem["file"], &problem["line"]);
    assert_eq!((status, place), (1, (&"wrong.yaml".into(), &3.into())), "{json}");
}
