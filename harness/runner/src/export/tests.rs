//! A few folders as they are, and every case either a folder or a reason.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use std::process::{Command, Stdio};
use std::sync::Arc;

use super::*;
use crate::case::{LoadedCase, Source, load};
use crate::cluster::Kubelet;
use crate::images::Lock;

const MACHINE: Machine = Machine { memory: 16 << 30, cgroup_v1: false };

/// What is in a file.
type Says = &'static [&'static str];

fn kubelet(version: &str) -> Kubelet {
    Kubelet {
        label: version.to_owned(),
        version: version.parse().unwrap(),
        image: format!("kindest/node:{version}"),
        image_version: version.parse().unwrap(),
        binary: None,
    }
}

fn shipped() -> Vec<Arc<LoadedCase>> {
    load(&Source::Dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases").into())).unwrap()
}

fn case(id: &str) -> Arc<LoadedCase> {
    shipped().into_iter().find(|case| case.id() == id).unwrap()
}

fn exported(id: &str, kubelets: &[Kubelet], machine: &Machine) -> Result<Recipe, NotExportable> {
    let lock = Lock::load(None).unwrap();
    recipe(&case(id), kubelets, machine, &|image| lock.case_image(image))
}

fn refused(id: &str, kubelets: &[Kubelet]) -> String {
    exported(id, kubelets, &MACHINE).unwrap_err().to_string()
}

/// What a shell that only reads a script says of it.
fn read_by_shell(script: &str) -> Result<(), String> {
    let mut shell =
        Command::new("sh").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let read = shell.wait_with_output().unwrap();
    if read.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&read.stderr).into_owned()) }
}

#[test]
fn two_kubelets_share_a_folder() {
    let kubelets = [kubelet("v1.31.14"), kubelet("v1.32.13")];
    let recipe = exported("message/sidecars-are-named", &kubelets, &MACHINE).unwrap();
    insta::assert_snapshot!("sidecars_kind_config", recipe.kind_config);
    insta::assert_snapshot!("sidecars_manifests", recipe.manifests);
    insta::assert_snapshot!("sidecars_script", recipe.script);
}

#[test]
fn what_a_case_states_is_in_its_folder() {
    let rows: [(&str, Says, Says, Says); 7] = [
        (
            "message/soft-threshold-message",
            &[
                "evictionMaxPodGracePeriod: 3",
                "eviction-soft: memory.available<",
                "eviction-soft-grace-period: memory.available=3s",
            ],
            &[],
            &["eviction-soft is set to"],
        ),
        (
            "limits/hard-grace",
            &["housekeeping-interval: 1s"],
            &["ephemeral-storage: 20Mi"],
            &["within 30s of the event", "<1.31"],
        ),
        (
            "message/ephemeral-container-is-never-named",
            &[],
            &[],
            &["debug alloc --container=el-debug", "--arguments-only -- stress --mem-alloc-size 10Mi"],
        ),
        (
            "ranking/priority-breaks-ties",
            &[],
            &["kind: PriorityClass", "priorityClassName: high", "value: 1000"],
            &["low is evicted"],
        ),
        (
            "storage/emptydir-hog",
            &["nodefs.available<1Mi", "is never met"],
            &["name: STEP_BYTES\n      value: '8388608'"],
            &["availableBytes", "256Mi below"],
        ),
        ("pids/pid-pressure", &["pid.available<1"], &[], &["maxpid", "has - 600"]),
        ("thresholds/percentage", &[], &[], &["%03d", "status.capacity.memory"]),
    ];
    for (id, config, manifests, script) in rows {
        let recipe = exported(id, &[kubelet("v1.32.13")], &MACHINE).unwrap();
        let texts = [(&recipe.kind_config, config), (&recipe.manifests, manifests), (&recipe.script, script)];
        for (text, says) in texts.iter().flat_map(|(text, all)| all.iter().map(move |says| (text, says))) {
            assert!(text.contains(says), "{id}: no {says:?} in\n{text}");
        }
    }
}

#[test]
fn a_machine_shows_in_the_numbers() {
    let on = |version: &str, machine: &Machine| {
        exported("message/sidecars-are-named", &[kubelet(version)], machine).unwrap().kind_config
    };
    let v1 = Machine { cgroup_v1: true, ..MACHINE };
    // 16Gi less what a new worker takes and the distance.
    assert!(on("v1.32.13", &MACHINE).contains("eviction-hard: memory.available<15872Mi"));
    let tiny = Machine { memory: 256 << 20, ..MACHINE };
    assert!(on("v1.32.13", &tiny).contains("eviction-hard: memory.available<1Mi"));
    for (version, machine, notified, told) in [
        ("v1.32.13", &MACHINE, false, false),
        ("v1.32.13", &v1, true, false),
        ("v1.36.2", &v1, true, true),
        ("v1.36.2", &MACHINE, false, false),
    ] {
        let config = on(version, machine);
        assert_eq!(config.contains("kernelMemcgNotification: true"), notified, "{config}");
        assert_eq!(config.contains("failCgroupV1: false"), told, "{config}");
    }
}

#[test]
fn a_binary_is_mounted_and_copied() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("built");
    std::fs::write(&from, "a kubelet").unwrap();
    let own = Kubelet { version: "v1.32.99".parse().unwrap(), binary: Some(from), ..kubelet("v1.32.13") };
    let own = Kubelet { label: "v1.32.99".to_owned(), ..own };
    let recipe = exported("limits/hard-grace", &[own], &MACHINE).unwrap();
    assert!(recipe.kind_config.contains("{hostPath: ./kubelet-v1-32-99, containerPath: /usr/bin/kubelet"));
    let folder = dir.path().join("new/folder");
    recipe.write(&folder).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("kubelet-v1-32-99")).unwrap(), "a kubelet");
    for name in ["run.sh", "kubelet-v1-32-99"] {
        let mode = std::fs::metadata(folder.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{name}");
    }
    let error = recipe.write(&folder.join("run.sh")).unwrap_err();
    assert_eq!(error.path, folder.join("run.sh"));
}

#[test]
fn a_bug_decides_who_is_waited_for() {
    let waits = |version: &str| {
        let script =
            exported("ranking/pod-without-stats-goes-first", &[kubelet(version)], &MACHINE).unwrap().script;
        script.lines().find(|line| line.contains("=Evicted")).unwrap().to_owned()
    };
    assert!(waits("v1.32.13").ends_with("pod/new pod/alloc || missing=1"));
    assert!(waits("v1.26.15").ends_with("pod/alloc || missing=1") && !waits("v1.26.15").contains("pod/new"));
}

#[test]
fn kubelets_that_do_not_fit_are_told() {
    let rows: [(&str, &[&str], &str); 4] = [
        ("message/sidecars-are-named", &["v1.28.15"], "is for kubelets >=1.29, and v1.28.15 is none of them"),
        ("message/nobody-offends", &["v1.31.14", "v1.36.2"], "v1.31.14, v1.36.2 need 2 clusters"),
        ("storage/emptydir-hog", &["v1.31.14", "v1.32.13"], "starves nodefs.available, which all nodes"),
        ("relatives/drain", &["v1.32.13"], "a step does something while the case runs: drain"),
    ];
    for (id, versions, says) in rows {
        let kubelets: Vec<Kubelet> = versions.iter().map(|version| kubelet(version)).collect();
        let error = refused(id, &kubelets);
        assert!(error.contains(says), "{id}: {error}");
    }
}

#[test]
fn a_refusal_shows_every_line_that_asks_for_more() {
    let error = refused("out-of-memory/mem-eater-without-limits", &[kubelet("v1.32.13")]);
    assert!(
        error.starts_with(
            "out-of-memory/mem-eater-without-limits cannot be repeated by kind and kubectl alone"
        )
    );
    assert_eq!(error.matches("mem-eater-without-limits.yaml:").count(), 2, "{error}");
    assert!(error.contains("memory: 1500Mi"), "{error}");
    let lines = refused("relatives/drain", &[kubelet("v1.32.13")]);
    assert_eq!(lines.matches("drain.yaml:").count(), 4, "{lines}");
}

/// An image that nobody else has would make a folder that nobody else can use.
#[test]
fn an_image_of_no_registry_is_refused() {
    let text = "name: mine\nabout: Mine.\npods:\n  - metadata: {name: a}\n    spec:\n      containers:\n        - {name: c, image: stress:1}\nexpect: {evicted: [a]}\n";
    let case = crate::case::parse("own", "own/mine.yaml", "own/mine.yaml", text.as_bytes()).unwrap();
    let lock = Lock::load(None).unwrap();
    let error = recipe(&case, &[kubelet("v1.32.13")], &MACHINE, &|image| lock.case_image(image))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no registry has this image") && error.contains("own/mine.yaml:7:"), "{error}");
}

/// Every case of the suites: a folder that shells and YAML readers take, in which no variable is left; or the reason.
#[test]
fn every_case_is_a_folder_or_has_a_reason() {
    let lock = Lock::load(None).unwrap();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut folders = 0;
    for case in shipped() {
        let id = case.id();
        match recipe(&case, &[kubelet("v1.36.2")], &MACHINE, &|image| lock.case_image(image)) {
            Ok(recipe) => {
                folders += 1;
                read_by_shell(&recipe.script).unwrap_or_else(|why| panic!("{id}: {why}"));
                let config: serde_yaml::Value = serde_yaml::from_str(&recipe.kind_config).unwrap();
                for patch in config["kubeadmConfigPatches"].as_sequence().unwrap() {
                    let patch: serde_yaml::Value = serde_yaml::from_str(patch.as_str().unwrap()).unwrap();
                    assert!(patch["kind"].is_string(), "{id}");
                }
                for variable in ["STEP", "PAUSE", "TOTAL", "STEPS"] {
                    assert!(
                        !recipe.manifests.contains(&format!("$({variable})")),
                        "{id}: {}",
                        recipe.manifests
                    );
                }
                let documents: Vec<serde_yaml::Value> = serde_yaml::Deserializer::from_str(&recipe.manifests)
                    .map(|document| serde::Deserialize::deserialize(document).unwrap())
                    .collect();
                let pods = documents.iter().filter(|document| document["kind"] == "Pod").count();
                assert_eq!(pods, case.case.pods.len(), "{id}");
            }
            Err(NotExportable::Unsayable { problems, .. }) => {
                for problem in problems {
                    assert!(problem.places.iter().all(|place| place.mark.is_some()), "{id}: {problem}");
                    reasons.entry(problem.what).or_default().push(id.clone());
                }
            }
            Err(other) => panic!("{id}: {other}"),
        }
    }
    let counted: Vec<String> = reasons.iter().map(|(why, ids)| format!("{:2} {why}", ids.len())).collect();
    insta::assert_snapshot!(format!("{folders} folders\n{}", counted.join("\n")));
}
