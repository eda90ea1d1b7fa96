//! `evictlab verify`

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::documents;

/// Exit status, standard output, standard error.
fn verify(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    let output = command.args(["verify", "--backend", "embedded"]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn documents_a_fixed_bug() {
    let folder = tempfile::tempdir().unwrap();
    let issue = "kubernetes/kubernetes#124938";
    let (status, stdout, stderr) =
        verify(&folder, &["--upstream", issue, "--before", "v1.31", "--after", "v1.32"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let sentence = format!("{issue} occurs on v1.31.14 and not on v1.32.13 (message/sidecars-are-named).");
    let conclusions = stdout.split("\n\n").last().unwrap();
    assert!(conclusions.starts_with(&format!("{issue} occurs on ")), "{stdout}");
    assert!(conclusions.contains(&format!("{sentence}\n")), "{stdout}");
    let document = fs::read_to_string(folder.path().join("results/latest/verify.md")).unwrap();
    for part in [
        sentence.as_str(),
        "This result is from a model",
        "+offending_containers: el-sidecar1\n",
        "\n+Container el-sidecar1 was using …, request is 0, has larger consumption of memory.\n",
        "### Event on v1.31.14\n\n```yaml\napiVersion: v1\nkind: Event\n",
        "offending_containers: el1\n",
        "evictlab verify --upstream 'kubernetes/kubernetes#124938' --before v1.31 --after v1.32 --backend kind\n",
    ] {
        assert!(document.contains(part), "{part}\n{document}");
    }
    // The document is pasted into issues, where a picture of the run directory would be a dead
    // link.
    assert!(!document.contains("!["), "{document}");
    let pictures: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("Timeline on ")?.split_once(": `")?.1.split_once('`'))
        .map(|(picture, _)| picture)
        .collect();
    assert!(pictures.len() >= 4, "{document}");
    for picture in pictures {
        let path = folder.path().join("results/latest").join(picture);
        assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"), "{}", path.display());
    }
}

/// Shards of a run are compared without running the cases again.
#[test]
fn compares_the_kubelets_of_recorded_runs() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
        let output = command.args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for shard in ["1/2", "2/2"] {
        let dir = format!("shard-{}", &shard[..1]);
        let arguments =
            ["run", "message", "--kubelet", "v1.31,v1.32", "--shard", shard, "--output-dir", &dir];
        assert_eq!(run(&arguments).0, Some(0));
    }
    let issue = "kubernetes/kubernetes#124938";
    let runs = ["--runs", "shard-1", "shard-2"];
    let compare = |more: &[&str]| run(&[&["verify", "--before", "v1.31"][..], more, &runs].concat());
    let (status, stdout, stderr) = compare(&["--after", "v1.32", "--upstream", issue]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let sentence = format!("{issue} occurs on v1.31.14 and not on v1.32.13 (message/sidecars-are-named).");
    assert!(stdout.lines().any(|line| line == sentence), "{stdout}");
    let document = fs::read_to_string(folder.path().join("results/latest/verify.md")).unwrap();
    for part in [&sentence, "+offending_containers: el-sidecar1\n", "Timeline on v1.31.14"] {
        assert!(document.contains(part), "{part}\n{document}");
    }
    // All cases of the runs.
    let (status, stdout, _) = compare(&["--after", "v1.32"]);
    assert!(status == Some(0) && stdout.lines().count() > 5, "{stdout}");
    // Two names of one kubelet.
    let (status, _, stderr) = compare(&["--after", "v1.31.14"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("are both v1.31.14 (v1.31 and v1.31.14)\nhelp: "), "{stderr}");
    let (status, _, stderr) = compare(&["--after", "v1.33"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("their kubelets are v1.31.14, v1.32.13"), "{stderr}");
}

#[test]
fn two_names_of_one_kubelet_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (status, _, stderr) =
        verify(&folder, &["sidecars-are-named", "--before", "v1.31.14", "--after", "v1.31"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("are both v1.31.14 (v1.31.14 and v1.31)\nhelp: "), "{stderr}");
}

#[test]
fn json_has_only_the_conclusions() {
    let folder = tempfile::tempdir().unwrap();
    let kubelets = ["--before", "v1.31", "--after", "v1.32", "--json"];
    let (status, stdout, _) = verify(&folder, &[&["sidecars-are-named"], &kubelets[..]].concat());
    let json = documents::parse("verify", &stdout);
    let conclusion = &json["conclusions"][0];
    assert_eq!((status, &conclusion["conclusion"]), (Some(0), &"fixed".into()), "{stdout}");
    assert_eq!(conclusion["detail"], "kubernetes/kubernetes#124938");
    assert!(conclusion["sentence"].as_str().unwrap().contains("and not on v1.32.13"), "{stdout}");
    let page = folder.path().join(json["report"].as_str().unwrap()).with_extension("html");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<ins>+offending_containers: el-sidecar1</ins>"), "{page}");
}

#[test]
fn fails_if_no_bug_is_fixed() {
    for (before, after, sentence) in [
        ("v1.32", "v1.33", "message/sidecars-are-named passes on v1.32.13 and on v1.33.12: no difference."),
        (
            "v1.30",
            "v1.31",
            "kubernetes/kubernetes#124938 occurs on v1.30.14 and on v1.31.14 (message/sidecars-are-named).",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (status, stdout, _) =
            verify(&folder, &["sidecars-are-named", "--before", before, "--after", after]);
        assert_eq!(status, Some(1), "{stdout}");
        assert!(stdout.contains(sentence), "{stdout}");
    }
}

#[test]
fn rejects_invalid_input_before_the_run() {
    for (arguments, why) in [
        (
            &["--before", "v1.31", "--after", "v1.32"][..],
            "failed to select cases: none is named\nhelp: name the cases",
        ),
        (
            &["message", "--before", "v1.31", "--after", "v1.31"],
            "failed to compare kubelets: --before and --after are both v1.31",
        ),
        (&["--upstream", "a/b#1", "--before", "v1.31", "--after", "v1.32"], "refers to a/b#1"),
        (
            &["--upstream", "kubernetes/124938", "--before", "v1.31", "--after", "v1.32"],
            "owner/repository#number",
        ),
        (&["message", "--before", "v1.31", "--after", "v1.32", "--keep"], "--keep requires --backend kind"),
        (&["message", "--before", "v1.31", "--after", "v1.99"], "v1.99"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (status, stdout, stderr) = verify(&folder, arguments);
        assert_eq!(status, Some(2), "{stdout}{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert!(!folder.path().join("results").exists());
    }
}
