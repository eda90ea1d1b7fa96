//! `evictlab export` without a cluster.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

/// Runs `evictlab export` in a directory, without Docker: exit status, standard output, standard
/// error.
fn export(dir: &TempDir, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    let output = command
        .current_dir(dir)
        .env_remove("EVICTLAB_CASES")
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .arg("export")
        .args(args)
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), out, err)
}

#[test]
fn writes_the_directory_and_prints_its_use() {
    let dir = tempfile::tempdir().unwrap();
    let (status, out, err) =
        export(&dir, &["sidecars-are-named", "--kubelet", "v1.31", "--kubelet", "v1.32.2"]);
    assert_eq!(status, 0, "{err}");
    assert!(
        out.starts_with("./sidecars-are-named: message/sidecars-are-named on v1.31.14, v1.32.2;"),
        "{out}"
    );
    assert!(out.contains("./sidecars-are-named/run.sh"), "{out}");
    assert!(err.contains("without Docker"), "{err}");
    let folder = dir.path().join("sidecars-are-named");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["kind-config.yaml", "manifests.yaml", "run.sh"]);
    assert_eq!(fs::metadata(folder.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    let config = fs::read_to_string(folder.join("kind-config.yaml")).unwrap();
    // The digests are those of images.lock.
    assert_eq!(config.matches("image: kindest/node:v1.31.14@sha256:").count(), 1, "{config}");
    assert_eq!(config.matches("image: kindest/node:v1.32.2@sha256:").count(), 2, "{config}");
    let script = Command::new("sh").arg("-n").arg(folder.join("run.sh")).output().unwrap();
    assert!(script.status.success(), "{script:?}");
    // If shellcheck is installed, it must not report anything.
    if let Ok(checked) = Command::new("shellcheck").arg(folder.join("run.sh")).output() {
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
}

/// A line end in the name of a suite would end the comments of the files.
#[test]
fn the_name_of_a_suite_adds_no_lines() {
    let dir = tempfile::tempdir().unwrap();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/message/requests-decide.yaml");
    for (suite, is_valid) in [("mine\nx-injected: 1\n#", false), ("mine # x-injected: 1", true)] {
        let suite = dir.path().join(suite);
        fs::create_dir(&suite).unwrap();
        fs::copy(case, suite.join("requests-decide.yaml")).unwrap();
        let file = suite.join("requests-decide.yaml");
        let output = suite.join("export");
        let arguments =
            [file.to_str().unwrap(), "--kubelet", "v1.32", "--output-dir", output.to_str().unwrap()];
        let (status, _, err) = export(&dir, &arguments);
        assert_eq!(status, if is_valid { 0 } else { 2 }, "{err}");
        assert!(is_valid || err.contains("invalid suite name"), "{err}");
        for name in ["kind-config.yaml", "manifests.yaml"] {
            let text = fs::read_to_string(output.join(name)).unwrap_or_default();
            assert!(!text.lines().any(|line| line.starts_with("x-injected")), "{text}");
        }
    }
}

#[test]
fn rejects_a_directory_with_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/notes"), "mine").unwrap();
    let args = ["hard-grace", "--kubelet", "v1.32", "--output-dir"];
    let (status, out, err) = export(&dir, &[&args[..], &["mine"]].concat());
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "error: failed to create output directory mine: it is not empty\nhelp: choose a new or empty directory with --output-dir\n"
    );
    let (status, _, err) = export(&dir, &[&args[..], &["mine/notes"]].concat());
    assert!(status == 2 && err.contains("mine/notes: it is not accessible"), "{err}");
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert_eq!(export(&dir, &[&args[..], &["empty"]].concat()).0, 0);
    assert_eq!(fs::read_dir(dir.path().join("mine")).unwrap().count(), 1);
}

#[test]
fn rejects_unsupported_cases_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("program"), "not a program").unwrap();
    let rows: [(&[&str], &str); 11] = [
        (
            &["limits"],
            " cases, and an export has one\nhelp: name one of\n  limits/checked-with-memory-notifications\n",
        ),
        (&["sidecars-are-nameed"], "did you mean `sidecars-are-named`?"),
        (&["no-such-file.yaml"], "no-such-file.yaml"),
        (&["drain"], "relatives/drain.yaml:"),
        (&["static-pod-is-never-evicted"], "static pods are files on a node"),
        (
            &["sidecars-are-named", "--kubelet", "v1.28.15"],
            "requires kubelets >=1.29, and v1.28.15 does not match",
        ),
        (&["hard-grace", "--kubelet", "v1.31.14", "--kubelet", "v1.36"], "need 2 clusters"),
        (&["hard-grace", "--kubelet", "v1.31.99"], "the closest known versions are v1.31.14"),
        (&["hard-grace", "--kubelet", "v1.40"], "for kubelet v1.40: images are known for v1."),
        (&["hard-grace", "--kubelet", "mine/node:latest"], "--kubelet v1.32.11=mine/node:latest"),
        (&["hard-grace", "--kubelet", "./program"], "failed to read the version of ./program"),
    ];
    for (args, says) in rows {
        let (status, out, err) = export(&dir, args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(says), "{args:?}: {err}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "unexpected files");
}

#[test]
fn trusts_the_stated_version_of_an_image_without_docker() {
    let dir = tempfile::tempdir().unwrap();
    let (status, _, err) = export(
        &dir,
        &["sidecars-are-named", "--kubelet", "v1.33.1=mine/node:latest", "--kubelet", "mine/node:v1.32.9"],
    );
    assert_eq!(status, 0, "{err}");
    let config = fs::read_to_string(dir.path().join("sidecars-are-named/kind-config.yaml")).unwrap();
    assert!(config.contains("kubelet v1.33.1\n  image: mine/node:latest\n"), "{config}");
    assert!(config.contains("- role: control-plane\n  image: mine/node:latest\n"), "{config}");
}
