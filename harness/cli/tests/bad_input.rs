//! Input that cannot be used: what it is, what to do, the exit status, and nothing made. None of this needs a cluster; rows that ask
//! Docker are passed over with a line where there is none.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// A folder to run in, with a folder for the state and one with a `kind` of our own.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.program("bin/kind", "echo kind v0.99.0 go1.27.2 linux/amd64");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Exit status and standard error. Only the given `PATH` is searched for `kind`.
    fn evictlab(&self, path: &Path, docker: Option<&str>, args: &[&str]) -> (i32, String) {
        let mut command = Command::cargo_bin("evictlab").unwrap();
        command
            .current_dir(&self.dir)
            .env_remove("EVICTLAB_CASES")
            .env_remove("ARTIFACTS_DIR")
            .env("EVICTLAB_STATE_DIR", self.path("state"))
            .env("PATH", path)
            .args(args);
        if let Some(docker) = docker {
            command.env("DOCKER_HOST", docker);
        }
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// No results, and nothing about a cluster.
    fn is_untouched(&self) -> bool {
        let states = fs::read_dir(self.path("state")).map_or(0, Iterator::count);
        states == 0 && !self.path("results").exists()
    }
}

/// Whether Docker answers; if not, one line says what was not run.
fn docker(what: &str) -> bool {
    let place = Place::new();
    let there = place.evictlab(&place.path("bin"), None, &["cluster", "list"]).0 == 0;
    if !there {
        eprintln!("not run, for no Docker answers: {what}");
    }
    there
}

#[test]
fn arguments_that_cannot_be_used_are_told_before_anything_is_asked() {
    let place = Place::new();
    fs::create_dir(place.path("folder")).unwrap();
    fs::write(place.path("pod.yaml"), "kind: Pod\n").unwrap();
    let long = "a".repeat(46);
    let rows: [(&[&str], &str); 35] = [
        (&["explain", "Preempted in order to admit critical pod"], "neither an object nor a message"),
        (&["explain", "./nothing.yaml"], "./nothing.yaml cannot be read"),
        (&["run", "--kubelet", "banana"], "write a version (v1.32.13"),
        (&["run", "--kubelet", "./folder"], "./folder is a folder"),
        (&["run", "--kubelet", "v1.32.13=./nothing"], "there is no file ./nothing"),
        (&["run", "--node-image", "v1.32.13"], "write VERSION=IMAGE"),
        (&["run", "--timeout", "5parsecs"], "unknown time unit"),
        (&["run", "--name", "../x"], "\"../x\" is no name for a cluster"),
        (&["cluster", "create", "--name", "Bad Name"], "\"Bad Name\" is no name for a cluster"),
        (&["cluster", "create", "--name", &long], "at most 45"),
        (&["run", "--cluster", "a", "--name", "b"], "cannot be used with '--name <NAME>'"),
        (&["run", "nothing"], "no suite, case or file is named `nothing`"),
        (&["run", "--image-lock", "nothing"], "the image list nothing cannot be read"),
        (
            &["run", "--backend", "kind", "--kind-config", "pod.yaml"],
            "pod.yaml is no kind configuration: `kind: Cluster` is missing",
        ),
        (&["cluster", "create", "--kind-config", "nothing"], "the kind configuration nothing cannot be read"),
        (&["cluster", "kubeconfig", "nothing"], "evictlab knows no cluster named nothing"),
        (&["run", "--kubelet", "v1.37"], "models kubelets v1.27 to v1.36, and v1.37 is none of them"),
        (
            &["run", "--kubelet", "v1.26.15"],
            "v1.26.15 is none of them\nFor a real kubelet add --backend kind.",
        ),
        (&["run", "--kubelet", "kindest/node:v1.31.14"], "the node image kindest/node:v1.31.14 is to be run"),
        (&["run", "--kubelet", "./pod.yaml"], "the kubelet ./pod.yaml is to be run"),
        (&["run", "--keep"], "--keep is for kind clusters, and this is an embedded one\nAdd --backend kind."),
        (&["run", "--cluster", "lab"], "--cluster is for kind clusters"),
        (&["run", "--node-image", "v1.32.13=mine"], "--node-image is for kind clusters"),
        (&["cluster", "create", "--backend", "embedded", "--name", "lab"], "--name is for kind clusters"),
        (&["run", "--backend", "kind", "--seed", "3"], "--seed is for the embedded cluster"),
        (&["run", "--node-memory", "much"], "--node-memory <SIZE>"),
        (&["run", "--cgroup", "v3"], "\"v3\" is no cgroup version: write v1 or v2"),
        (&["run", "--fault", "event-lst: {}"], "event-lst"),
        (&["run", "--shard", "3/2"], "there is no shard 3 of 2: shards are numbered from 1 to 2"),
        (
            &["run", "--context", "mine"],
            "--context is for existing clusters, and this is an embedded one\nAdd --backend existing.",
        ),
        (&["run", "--backend", "kind", "--allow-disruption"], "--allow-disruption is for existing clusters"),
        (
            &["run", "--backend", "existing", "--keep"],
            "--keep is for kind clusters, and this is an existing one",
        ),
        (
            &["run", "--backend", "existing", "--kubelet", "v1.32"],
            "--kubelet is for clusters that evictlab makes",
        ),
        (
            &["run", "--backend", "existing", "--kubeconfig", "nothing"],
            "no cluster can be reached: failed to read kubeconfig from",
        ),
        (&["run", "--pressure-cap", "1Gi"], "--allow-disruption"),
    ];
    for (args, why) in rows {
        let (status, error) = place.evictlab(&place.path("bin"), Some("unix:///nonexistent"), args);
        assert_eq!(status, 2, "{args:?}: {error}");
        assert!(error.contains(why), "{args:?}: {error}");
        assert!(place.is_untouched(), "{args:?}");
    }
}

#[test]
fn a_docker_that_does_not_answer_is_told_with_its_address() {
    let place = Place::new();
    let commands: [&[&str]; 4] =
        [&["run", "--backend", "kind"], &["cluster", "list"], &["cluster", "create"], &["gc"]];
    for (host, why) in [
        ("unix:///nonexistent", "there is no Docker socket at unix:///nonexistent"),
        ("tcp://127.0.0.1:1", "at tcp://127.0.0.1:1: Connection refused"),
        ("nonsense", "at nonsense: "),
    ] {
        for args in commands {
            let (status, error) = place.evictlab(&place.path("bin"), Some(host), args);
            assert_eq!(status, 4, "{host} {args:?}: {error}");
            assert!(error.contains(why) && error.contains("DOCKER_HOST"), "{host} {args:?}: {error}");
            assert!(place.is_untouched(), "{host} {args:?}");
        }
    }
}

#[test]
fn a_kind_that_cannot_be_used_is_told_before_anything_is_made() {
    if !docker("a kind that is missing, too old, or something else") {
        return;
    }
    let place = Place::new();
    place.program("old/kind", "echo kind v0.27.0 go1.24 linux/amd64");
    place.program("odd/kind", "echo hello there");
    fs::create_dir(place.path("none")).unwrap();
    for (path, why) in [
        ("none", "the command `kind` is not on the PATH\nInstall it: "),
        ("old", "kind 0.27.0 is too old, at least 0.32.0 is needed\nInstall a newer one: "),
        ("odd", "`kind version` answers \"hello there\""),
    ] {
        for args in [&["run", "--backend", "kind"][..], &["cluster", "create"]] {
            let (status, error) = place.evictlab(&place.path(path), None, args);
            assert_eq!(status, 4, "{path}: {error}");
            assert!(error.contains(why), "{path}: {error}");
            assert!(place.is_untouched(), "{path}");
        }
    }
}

#[test]
fn what_docker_cannot_give_is_told_before_anything_is_made() {
    if !docker("kubelets without an image, programs that are no kubelet, clusters that are not there") {
        return;
    }
    let place = Place::new();
    place.program("hello", "echo hello");
    place.program("old", "echo Kubernetes v1.31.14");
    place.program("future", "echo Kubernetes v1.99.0");
    fs::write(place.path("text"), "not a program").unwrap();
    let rows: [(&[&str], &str); 7] = [
        (
            &["run", "--backend", "kind", "--kubelet", "v1.30.77"],
            "no node image is known for kubelet v1.30.77; the nearest are v1.30.",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "./hello"],
            "./hello is no kubelet: `./hello --version` says \"hello\"",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "./text"],
            "./text is no kubelet: `./text --version` cannot be run",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "v1.32.13=./old"],
            "./old is Kubernetes v1.31.14, but v1.32.13 was claimed\nCorrect the version",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "./future"],
            "none of that minor or a newer one is at hand\nName one with --node-image",
        ),
        (&["run", "--backend", "kind", "--cluster", "nothing"], "evictlab knows no cluster named nothing"),
        (&["cluster", "delete", "nothing"], "evictlab knows no cluster named nothing"),
    ];
    for (args, why) in rows {
        let (status, error) = place.evictlab(&place.path("bin"), None, args);
        assert_eq!(status, 2, "{args:?}: {error}");
        assert!(error.contains(why), "{args:?}: {error}");
        assert!(place.is_untouched(), "{args:?}");
    }
}
