//! Invalid input: the message, the help, the exit status, and no side effects. No test needs a
//! cluster; tests that need Docker are skipped without it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A working directory with its own state directory and `kind`.
struct Workspace {
    dir: TempDir,
}

impl Workspace {
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

    /// Runs `evictlab`: exit status and standard error. `PATH` is the only place of `kind`.
    fn evictlab(&self, path: &Path, docker: Option<&str>, args: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
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

    /// Returns whether the directory has neither results nor cluster states.
    fn is_untouched(&self) -> bool {
        let states = fs::read_dir(self.path("state")).map_or(0, Iterator::count);
        states == 0 && !self.path("results").exists()
    }
}

/// Returns whether Docker answers; if not, prints what is skipped.
fn docker(what: &str) -> bool {
    let place = Workspace::new();
    let there = place.evictlab(&place.path("bin"), None, &["cluster", "list"]).0 == 0;
    if !there {
        eprintln!("skipped, no Docker: {what}");
    }
    there
}

#[test]
fn rejects_invalid_arguments_before_any_request() {
    let place = Workspace::new();
    fs::create_dir(place.path("folder")).unwrap();
    fs::write(place.path("pod.yaml"), "kind: Pod\n").unwrap();
    let long = "a".repeat(46);
    let rows: [(&[&str], &str); 65] = [
        (
            &["explain", "hello world"],
            "failed to find an eviction in this text, which begins with \"hello world\"\nhelp: pass an Event",
        ),
        (
            &["run", "--baseline", "ours.json"],
            "failed to read case ours.json: it is not a case\nhelp: a baseline needs an equals sign: --baseline=ours.json",
        ),
        (
            &["run", "--write-baseline=nowhere/x.json"],
            "failed to write a baseline to nowhere: the directory does not exist\nhelp: create it",
        ),
        (&["list", "--upstream", "https://github.com/a/b"], "must be owner/repository#number"),
        (&["explain", "./nothing.yaml"], "failed to read ./nothing.yaml"),
        (&["run", "--kubelet", "banana"], "use a version (v1.32.13"),
        (&["run", "--kubelet", "./folder"], "./folder: it is a directory"),
        (&["run", "--kubelet", "v1.32.13=./nothing"], "./nothing: the file does not exist"),
        (&["run", "--node-image", "v1.32.13"], "expected VERSION=IMAGE"),
        (&["run", "--timeout", "5parsecs"], "`parsecs` is not a unit of time: write 5s, 5m or 5h"),
        (&["run", "--name", "../x"], "failed to parse cluster name \"../x\""),
        (&["cluster", "create", "--name", "Bad Name"], "failed to parse cluster name \"Bad Name\""),
        (&["cluster", "create", "--name", &long], "at most 45"),
        (&["run", "--cluster", "a", "--name", "b"], "cannot be used with '--name <NAME>'"),
        (&["run", "nothing"], "failed to find suite, case or file `nothing`"),
        (&["run", "--image-lock", "nothing"], "failed to read image catalog nothing: "),
        (
            &["run", "--backend", "kind", "--kind-config", "pod.yaml"],
            "failed to parse kind configuration pod.yaml: `kind: Cluster` is missing",
        ),
        (&["cluster", "kubeconfig", "nothing"], "failed to find cluster nothing\nhelp: "),
        (
            &["run", "--kubelet", "v1.38"],
            "failed to model kubelet v1.38: the embedded cluster supports v1.27 to v1.37",
        ),
        (
            &["cluster", "create", "--backend", "kind", "--kind-config", "nothing"],
            "failed to read kind configuration nothing: ",
        ),
        (
            &["run", "--kubelet", "v1.26.15"],
            "failed to model kubelet v1.26.15: the embedded cluster supports v1.27 to v1.37\nhelp: run a real kubelet with --backend kind",
        ),
        (
            &["run", "--kubelet", "kindest/node:v1.31.14"],
            "failed to model the node image kindest/node:v1.31.14",
        ),
        (&["run", "--kubelet", "./pod.yaml"], "failed to model the kubelet ./pod.yaml"),
        (
            &["run", "--keep"],
            "--keep requires --backend kind, and the backend is embedded\nhelp: remove --keep, or add --backend kind",
        ),
        (&["run", "--cluster", "lab"], "--cluster requires --backend kind"),
        (&["run", "--node-image", "v1.32.13=mine"], "--node-image requires --backend kind"),
        (&["cluster", "create", "--kind-config", "pod.yaml"], "--kind-config requires --backend kind"),
        (&["run", "--backend", "kind", "--seed", "3"], "--seed requires --backend embedded"),
        (&["run", "--node-memory", "much"], "--node-memory <SIZE>"),
        (&["run", "--cgroup", "v3"], "invalid cgroup version \"v3\": expected v1 or v2"),
        (
            &["run", "--fault", "event-lst: {}"],
            "unknown value `event-lst`\n --> --fault:1:1\n  |\n1 | event-lst: {}\n  | ^^^^^^^^^ did you mean `event-lost`?",
        ),
        (&["run", "--fault", "api-error: {code: abc}"], "expected a whole number\n --> --fault:1:19"),
        (&["run", "--shard", "3/2"], "invalid shard 3 of 2: shards are numbered from 1 to 2"),
        (
            &["run", "--context", "mine"],
            "--context requires --backend existing, and the backend is embedded\nhelp: remove --context, or add --backend existing",
        ),
        (
            &["run", "--backend", "kind", "--allow-disruption"],
            "--allow-disruption requires --backend existing",
        ),
        (
            &["run", "--backend", "existing", "--keep"],
            "--keep requires --backend kind, and the backend is existing",
        ),
        (
            &["run", "--backend", "existing", "--kubelet", "v1.32"],
            "--kubelet applies only to clusters created by evictlab",
        ),
        (
            &["run", "--backend", "existing", "--kubeconfig", "nothing"],
            "failed to load the kubeconfig: failed to read nothing: No such file",
        ),
        (
            &["watch", "--once", "--kubeconfig", "pod.yaml"],
            "failed to load the kubeconfig: pod.yaml is not a kubeconfig: its kind is Pod\nhelp: name it with",
        ),
        (
            &["run", "--kubelet", ">=1.31"],
            "it is a range, and one version is expected\nhelp: name the version",
        ),
        (&["run", "--pressure-cap", "1Gi"], "--allow-disruption"),
        (&["report", ".", "--json"], "--json needs --compare\nhelp: name two runs: --compare BEFORE AFTER"),
        (&["report", ".", "--exit-code"], "--exit-code needs --compare"),
        (&["report", "--history", ".", "--json"], "--json needs --compare"),
        (&["report"], "the directory does not contain one\nhelp: start one with `evictlab run`"),
        (&["history"], "the directory does not contain one\nhelp: start one with `evictlab run`"),
        (&["compare", "a", "b"], "tip: to compare two runs, use `evictlab report --compare BEFORE AFTER`"),
        (&["book", "out"], "book needs a checkout of evictlab"),
        (&["gc", "--results=nosuch"], "failed to list nosuch: the directory does not exist"),
        (&["gc", "--keep-runs", "3"], "--results"),
        (&["gc", "--results", "--keep-runs", "x"], "'--keep-runs <N>': expected a whole number"),
        (&["run", "--keep-runs", "x"], "'--keep-runs <N>': expected a whole number"),
        (&["run", "--keep-runs", "0"], "'--keep-runs <N>': 0 is not in 1.."),
        (&["run", "--retries", "x"], "'--retries <N>': expected a whole number"),
        (&["run", "--nodes", "70000"], "'--nodes <N>': 70000 is not in 1..=1000"),
        (&["run", "--seed", "x"], "'--seed <N>': expected a whole number"),
        (&["run", "--seed", "99999999999999999999"], "'--seed <N>': the number is too large"),
        (&["mutants", "run", "--seed", "x"], "'--seed <N>': expected a whole number"),
        (&["stress", "--repeat", "x"], "'--repeat <N>': expected a whole number"),
        (&["history", "--recent", "x"], "'--recent <N>': expected a whole number"),
        (&["watch", "--pods", "x"], "'--pods <N>': expected a whole number"),
        (&["watch", "--metrics", "foo"], "expected ADDRESS:PORT, such as 127.0.0.1:9090"),
        (&["watch", "--signal", "memory"], "possible values: memory.available, allocatableMemory.available"),
        (&["run", "--kubelet", "v1.31, banana"], "failed to parse kubelet \"banana\": "),
        (
            &["run", "requests-decide", "--output-dir", "pod.yaml"],
            "failed to write pod.yaml/artifacts: Not a directory (os error 20)\nhelp: a part of this path is a file: choose another directory with --output-dir",
        ),
    ];
    for (args, why) in rows {
        let (status, error) = place.evictlab(&place.path("bin"), Some("unix:///nonexistent"), args);
        assert_eq!(status, 2, "{args:?}: {error}");
        assert!(error.contains(why), "{args:?}: {error}");
        assert!(place.is_untouched(), "{args:?}");
    }
}

#[test]
fn reports_the_address_of_an_unreachable_docker() {
    let place = Workspace::new();
    let commands: [&[&str]; 4] = [
        &["run", "--backend", "kind"],
        &["cluster", "list"],
        &["cluster", "create", "--backend", "kind"],
        &["gc"],
    ];
    for (host, why) in [
        (
            "unix:///nonexistent",
            "failed to connect to the Docker daemon at unix:///nonexistent: the socket does not exist",
        ),
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
fn rejects_an_unusable_kind_before_the_run() {
    if !docker("a kind that is missing, too old, or something else") {
        return;
    }
    let place = Workspace::new();
    place.program("old/kind", "echo kind v0.27.0 go1.24 linux/amd64");
    place.program("odd/kind", "echo hello there");
    fs::create_dir(place.path("none")).unwrap();
    for (path, why) in [
        ("none", "failed to run `kind`: it is not on the PATH\nhelp: install it: "),
        ("old", "failed to use kind 0.27.0: 0.32.0 or newer is required\nhelp: install a newer version: "),
        ("odd", "failed to parse the output of `kind version`: \"hello there\""),
    ] {
        for args in [&["run", "--backend", "kind"][..], &["cluster", "create", "--backend", "kind"]] {
            let (status, error) = place.evictlab(&place.path(path), None, args);
            assert_eq!(status, 4, "{path}: {error}");
            assert!(error.contains(why), "{path}: {error}");
            assert!(place.is_untouched(), "{path}");
        }
    }
}

#[test]
fn rejects_missing_images_before_the_run() {
    if !docker("kubelets without an image, programs that are not a kubelet, clusters that do not exist") {
        return;
    }
    let place = Workspace::new();
    place.program("hello", "echo hello");
    place.program("old", "echo Kubernetes v1.31.14");
    place.program("future", "echo Kubernetes v1.99.0");
    fs::write(place.path("text"), "not a program").unwrap();
    let rows: [(&[&str], &str); 7] = [
        (
            &["run", "--backend", "kind", "--kubelet", "v1.30.77"],
            "failed to find a node image for kubelet v1.30.77; the closest known versions are v1.30.",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "./hello"],
            "failed to read the version of ./hello: `./hello --version` prints \"hello\"",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "./text"],
            "failed to read the version of ./text: `./text --version` cannot be run",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "v1.32.13=./old"],
            "failed to use ./old as v1.32.13: its version is v1.31.14\nhelp: correct the version",
        ),
        (
            &["run", "--backend", "kind", "--kubelet", "./future"],
            "or a newer one is available\nhelp: name an image with --node-image",
        ),
        (&["run", "--backend", "kind", "--cluster", "nothing"], "failed to find cluster nothing\nhelp: "),
        (&["cluster", "delete", "nothing"], "failed to find cluster nothing\nhelp: "),
    ];
    for (args, why) in rows {
        let (status, error) = place.evictlab(&place.path("bin"), None, args);
        assert_eq!(status, 2, "{args:?}: {error}");
        assert!(error.contains(why), "{args:?}: {error}");
        assert!(place.is_untouched(), "{args:?}");
    }
}
