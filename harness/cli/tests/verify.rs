//! One case on two kubelets, and the document about it.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs;
use std::process::Command;

use tempfile::TempDir;

/// Exit status, standard output, standard error.
fn verify(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    let output = command.args(["verify", "--backend", "embedded"]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_bug_that_is_mended_is_shown_in_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let issue = "kubernetes/kubernetes#124938";
    let (status, said, errors) =
        verify(&folder, &["--upstream", issue, "--before", "v1.31", "--after", "v1.32"]);
    assert_eq!(status, Some(0), "{said}{errors}");
    let sentence =
        format!("{issue} shows on v1.31.14 and does not on v1.32.13 (message/sidecars-are-named).");
    assert!(said.contains(&sentence), "{said}");
    let document = fs::read_to_string(folder.path().join("results/latest/verify.md")).unwrap();
    for part in [
        sentence.as_str(),
        "A model said this",
        "+offending_containers: el-sidecar1\n",
        "\n+Container el-sidecar1 was using …, request is 0, has larger consumption of memory.\n",
        "### The event on v1.31.14\n\n```yaml\napiVersion: v1\nkind: Event\n",
        "offending_containers: el1\n",
        "evictlab verify --upstream 'kubernetes/kubernetes#124938' --before v1.31 --after v1.32\n",
    ] {
        assert!(document.contains(part), "{part}\n{document}");
    }
    let pictures: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("![")?.split_once("](")?.1.strip_suffix(')'))
        .collect();
    assert!(pictures.len() >= 4, "{document}");
    for picture in pictures {
        let path = folder.path().join("results/latest").join(picture);
        assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"), "{}", path.display());
    }
}

#[test]
fn what_is_not_mended_is_no_success() {
    for (before, after, sentence) in [
        (
            "v1.32",
            "v1.33",
            "message/sidecars-are-named holds on v1.32.13 and on v1.33.12: there is no difference.",
        ),
        (
            "v1.30",
            "v1.31",
            "kubernetes/kubernetes#124938 shows on v1.30.14 and on v1.31.14 (message/sidecars-are-named).",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (status, said, _) =
            verify(&folder, &["sidecars-are-named", "--before", before, "--after", after]);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(sentence), "{said}");
    }
}

#[test]
fn what_cannot_be_verified_is_told_before_anything_is_made() {
    for (arguments, why) in [
        (&["--before", "v1.31", "--after", "v1.32"][..], "nothing to verify: name the cases"),
        (&["message", "--before", "v1.31", "--after", "v1.31"], "--before and --after are both v1.31"),
        (&["--upstream", "a/b#1", "--before", "v1.31", "--after", "v1.32"], "names a/b#1"),
        (&["--upstream", "124938", "--before", "v1.31", "--after", "v1.32"], "owner/repository#number"),
        (&["message", "--before", "v1.31", "--after", "v1.32", "--keep"], "--keep is for kind clusters"),
        (&["message", "--before", "v1.31", "--after", "v1.99"], "v1.99"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (status, said, errors) = verify(&folder, arguments);
        assert_eq!(status, Some(2), "{said}{errors}");
        assert!(errors.contains(why), "{errors}");
        assert!(!folder.path().join("results").exists());
    }
}
