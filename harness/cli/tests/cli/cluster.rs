//! `evictlab cluster` with embedded clusters.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use evictlab_cluster::{ClusterRecord, Owner};

use crate::documents;

fn evictlab(arguments: &[&str], state: &Path) -> Output {
    evictlab_in(Path::new("."), arguments, state)
}

fn evictlab_in(directory: &Path, arguments: &[&str], state: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.env("EVICTLAB_STATE_DIR", state).env("DOCKER_HOST", "unix:///nonexistent.sock");
    command.current_dir(directory).args(arguments).output().unwrap()
}

/// Deletes the cluster of a test that failed.
struct Deleted<'a>(&'a Path);

impl Drop for Deleted<'_> {
    fn drop(&mut self) {
        evictlab(&["cluster", "delete", "sim"], self.0);
    }
}

#[test]
fn a_detached_cluster_is_listed_until_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let create = ["cluster", "create", "--name", "sim", "--detach", "--kubelet", "v1.33"];
    let _deleted = Deleted(&state);
    let created = evictlab(&create, &state);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let second = evictlab(&create, &state);
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("failed to create cluster sim: it exists"));

    let listed = evictlab(&["cluster", "list", "--json"], &state);
    let listed = documents::parse("cluster-list", &listed.stdout);
    assert_eq!((&listed[0]["backend"], &listed[0]["cluster"]), (&"embedded".into(), &"sim".into()));
    documents::parse("embedded-cluster-record", fs::read(state.join("sim.embedded")).unwrap());
    let kubeconfig = evictlab(&["cluster", "kubeconfig", "sim"], &state);
    let kubeconfig = String::from_utf8(kubeconfig.stdout).unwrap();
    let watched = evictlab(&["watch", "--once", "--json", "--kubeconfig", kubeconfig.trim()], &state);
    assert!(String::from_utf8_lossy(&watched.stdout).contains("v1-33-worker"));

    let deleted = evictlab(&["cluster", "delete", "sim"], &state);
    assert!(deleted.status.success());
    assert_eq!(String::from_utf8_lossy(&deleted.stdout), "cluster sim is deleted\n");
    assert_eq!(state.read_dir().unwrap().count(), 0, "files of the cluster are left");
}

#[test]
fn the_directory_of_a_detached_cluster_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("volume"));
    fs::create_dir(&directory).unwrap();
    let _deleted = Deleted(&state);
    let create = ["cluster", "create", "--name", "sim", "--detach", "--kubelet", "v1.33"];
    let created = evictlab_in(&directory, &create, Path::new("../state"));
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let kubeconfig = format!("KUBECONFIG={}\n", state.join("sim.kubeconfig").display());
    let printed = String::from_utf8_lossy(&created.stdout).into_owned();
    assert!(printed.replace("volume/../", "").contains(&kubeconfig), "{printed}");
    let listed = documents::parse("cluster-list", evictlab(&["cluster", "list", "--json"], &state).stdout);
    let process = format!("/proc/{}/cwd", listed[0]["owner"]["pid"]);
    if Path::new("/proc/self/cwd").exists() {
        assert_eq!(fs::read_link(process).unwrap(), Path::new("/"));
    }
    fs::remove_dir(&directory).unwrap();
    assert!(evictlab(&["cluster", "stop", "sim"], &state).status.success());
    let started = evictlab(&["cluster", "start", "sim"], &state);
    let error = String::from_utf8_lossy(&started.stderr);
    assert!(started.status.code() == Some(2) && error.contains("/volume does not exist any more"), "{error}");
    assert!(evictlab(&["cluster", "delete", "sim"], &state).status.success());
}

#[test]
fn a_stopped_cluster_starts_with_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let _deleted = Deleted(&state);
    let succeed = |arguments: &[&str]| {
        let output = evictlab(arguments, &state);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let fail = |arguments: &[&str]| {
        let output = evictlab(arguments, &state);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let create = ["cluster", "create", "--name", "sim", "--detach", "--kubelet", "v1.33", "--nodes", "2"];
    assert!(fail(&["cluster", "stop", "sim"]).contains("failed to find cluster sim"));
    succeed(&create);
    let kubeconfig = succeed(&["cluster", "kubeconfig", "sim"]);
    for _again in 0..2 {
        assert!(succeed(&["cluster", "stop", "sim"]).contains("evictlab cluster start sim"));
    }
    let listed = documents::parse("cluster-list", succeed(&["cluster", "list", "--json"]));
    assert_eq!((&listed[0]["cluster"], &listed[0]["stopped"]), (&"sim".into(), &true.into()));
    assert!(succeed(&["cluster", "list"]).contains("stopped"));
    assert!(fail(&["cluster", "kubeconfig", "sim"]).contains("evictlab cluster start sim"));
    assert!(fail(&create).contains("failed to create cluster sim: it exists"));

    for _again in 0..2 {
        succeed(&["cluster", "start", "sim"]);
    }
    assert_eq!(succeed(&["cluster", "kubeconfig", "sim"]), kubeconfig);
    let watched = succeed(&["watch", "--once", "--json", "--kubeconfig", kubeconfig.trim()]);
    assert!(watched.contains("v1-33-worker2"), "{watched}");
    succeed(&["cluster", "stop", "sim"]);
    succeed(&["cluster", "delete", "sim"]);
    assert_eq!(state.read_dir().unwrap().count(), 0, "files of the cluster are left");
}

/// Embedded clusters need no Docker, unless a daemon or a record of a kind cluster is named.
#[test]
fn clusters_are_listed_without_docker() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut list = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    list.env("EVICTLAB_STATE_DIR", &state).env_remove("DOCKER_HOST").args(["cluster", "list"]);
    let listed = list.output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    if !Path::new("/var/run/docker.sock").exists() {
        assert_eq!(listed.stdout, b"no clusters\n");
        assert!(
            String::from_utf8_lossy(&listed.stderr).contains("kind clusters are not listed"),
            "{listed:?}"
        );
    }
    assert_eq!(evictlab(&["cluster", "list"], &state).status.code(), Some(4));
    assert_eq!(evictlab(&["cluster", "delete", "lab"], &state).status.code(), Some(2));
    let record = ClusterRecord::new("daemon", "lab", "run", Owner::current(), vec!["v1.36.4".to_owned()]);
    fs::write(state.join("lab.json"), serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(evictlab(&["cluster", "delete", "lab"], &state).status.code(), Some(4));
}

#[test]
fn thresholds_with_which_no_kubelet_starts_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for (options, problem) in [
        (&["--eviction-hard", "memory.availble<2Gi"][..], "unsupported eviction signal memory.availble"),
        (&["--eviction-hard", "memory.available=2Gi"], "is not SIGNAL<VALUE"),
        (
            &["--kubelet", "v1.28", "--eviction-hard", "containerfs.available<1Gi"],
            "kubelet v1.28.15 does not start with them: ",
        ),
        (&["--eviction-soft", "memory.available<2Gi"], "--eviction-soft-grace-period"),
        (
            &["--eviction-soft", "memory.availble<2Gi", "--eviction-soft-grace-period", "memory.availble=1m"],
            "--eviction-soft 'memory.available<3Gi'",
        ),
        (&["--backend", "kind", "--eviction-hard", "default"], "requires --backend embedded"),
    ] {
        let arguments = [&["cluster", "create"], options].concat();
        let output = evictlab(&arguments, folder.path());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(problem), "{options:?}: {error}");
    }
}
