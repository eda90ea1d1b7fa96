//! Tests of exports: snapshots of one export, and an export or a reason for every case.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use std::process::{Command, Stdio};
use std::sync::Arc;

use super::*;
use evictlab_case::{LoadedCase, Source, load};
use evictlab_cluster::Kubelet;
use evictlab_cluster::images::ImageCatalog;
use evictlab_rules::CgroupVersion;

const HOST: HostInfo = HostInfo { memory: 16 << 30, cgroup: CgroupVersion::V2 };

/// Texts in a file.
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

fn exported(id: &str, kubelets: &[Kubelet], host: &HostInfo) -> Result<Recipe, ExportError> {
    let catalog = ImageCatalog::load(None).unwrap();
    recipe(&case(id), kubelets, host, &|image| catalog.case_image(image))
}

fn refused(id: &str, kubelets: &[Kubelet]) -> String {
    exported(id, kubelets, &HOST).unwrap_err().to_string()
}

/// Checks the syntax of a script with a shell.
fn read_by_shell(script: &str) -> Result<(), String> {
    let mut shell =
        Command::new("sh").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let read = shell.wait_with_output().unwrap();
    if read.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&read.stderr).into_owned()) }
}

#[test]
fn exports_two_kubelets_in_one_directory() {
    let kubelets = [kubelet("v1.31.14"), kubelet("v1.32.13")];
    let recipe = exported("message/sidecars-are-named", &kubelets, &HOST).unwrap();
    insta::assert_snapshot!("sidecars_kind_config", recipe.kind_config);
    insta::assert_snapshot!("sidecars_manifests", recipe.manifests);
    insta::assert_snapshot!("sidecars_script", recipe.script);
}

#[test]
fn exports_the_fields_of_a_case() {
    let rows: [(&str, Says, Says, Says); 7] = [
        (
            "message/soft-threshold-message",
            &[
                "evictionMaxPodGracePeriod: 6",
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
            &["within 4s of the event", "<1.31"],
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
            &["kind: PriorityClass", "priorityClassName: low", "value: -10"],
            &["low is evicted"],
        ),
        (
            "storage/emptydir-hog",
            &["nodefs.available<1Mi", "is never met"],
            &["name: STEP_BYTES\n      value: '8388608'"],
            &["availableBytes", "256Mi below"],
        ),
        ("pids/fork-hog-is-the-victim", &["pid.available<1"], &[], &["maxpid", "has - 1500"]),
        ("thresholds/percentage", &[], &[], &["%03d", "status.capacity.memory"]),
    ];
    for (id, config, manifests, script) in rows {
        let recipe = exported(id, &[kubelet("v1.32.13")], &HOST).unwrap();
        let texts = [(&recipe.kind_config, config), (&recipe.manifests, manifests), (&recipe.script, script)];
        for (text, says) in texts.iter().flat_map(|(text, all)| all.iter().map(move |says| (text, says))) {
            assert!(text.contains(says), "{id}: no {says:?} in\n{text}");
        }
    }
}

#[test]
fn a_machine_determines_the_numbers() {
    let on = |version: &str, host: &HostInfo| {
        exported("message/sidecars-are-named", &[kubelet(version)], host).unwrap().kind_config
    };
    let v1 = HostInfo { cgroup: CgroupVersion::V1, ..HOST };
    // 16Gi minus the usage of a new worker and the distance.
    assert!(on("v1.32.13", &HOST).contains("eviction-hard: memory.available<15872Mi"));
    let tiny = HostInfo { memory: 256 << 20, ..HOST };
    assert!(on("v1.32.13", &tiny).contains("eviction-hard: memory.available<1Mi"));
    for (version, host, notified, accepts_v1) in [
        ("v1.32.13", &HOST, false, false),
        ("v1.32.13", &v1, true, false),
        ("v1.36.2", &v1, true, true),
        ("v1.36.2", &HOST, false, false),
    ] {
        let config = on(version, host);
        assert_eq!(config.contains("kernelMemcgNotification: true"), notified, "{config}");
        assert_eq!(config.contains("failCgroupV1: false"), accepts_v1, "{config}");
    }
}

#[test]
fn mounts_and_copies_binaries() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("built");
    std::fs::write(&from, "a kubelet").unwrap();
    let own = Kubelet { version: "v1.32.99".parse().unwrap(), binary: Some(from), ..kubelet("v1.32.13") };
    let own = Kubelet { label: "v1.32.99".to_owned(), ..own };
    let recipe = exported("limits/hard-grace", &[own], &HOST).unwrap();
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
fn names_do_not_run_as_commands() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "a'; touch one; '$(touch two)`touch three`\"";
    let recipe =
        recipe(&case("message/sidecars-are-named"), &[kubelet("v1.32.13")], &HOST, &|_| hostile.to_owned());
    let script = recipe.unwrap().script;
    read_by_shell(&script).unwrap();
    // The assignments, without the commands that follow.
    let (assignments, _) = script.split_once("\n\n").unwrap();
    let printed = format!("{assignments}\nprintf %s \"$images\"");
    let shell = Command::new("sh").args(["-c", &printed]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), hostile);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a command ran");
}

#[test]
fn waits_for_the_pods_that_a_known_bug_evicts() {
    let waits = |version: &str| {
        let script =
            exported("ranking/pod-without-stats-goes-first", &[kubelet(version)], &HOST).unwrap().script;
        script.lines().find(|line| line.contains("=Evicted")).unwrap().to_owned()
    };
    assert!(waits("v1.32.13").ends_with("pod/new pod/alloc || missing=1"));
    assert!(waits("v1.26.15").ends_with("pod/alloc || missing=1") && !waits("v1.26.15").contains("pod/new"));
}

#[test]
fn rejects_unsuitable_kubelets() {
    let rows: [(&str, &[&str], &str); 4] = [
        (
            "message/sidecars-are-named",
            &["v1.28.15"],
            "requires kubelets >=1.29, and v1.28.15 does not match",
        ),
        (
            "message/nobody-offends",
            &["v1.31.14", "v1.36.2"],
            "failed to export v1.31.14, v1.36.2: they need 2 clusters",
        ),
        (
            "storage/emptydir-hog",
            &["v1.31.14", "v1.32.13"],
            "puts nodefs.available under pressure, which all nodes",
        ),
        ("relatives/drain", &["v1.32.13"], "a step acts while the case runs: drain"),
    ];
    for (id, versions, says) in rows {
        let kubelets: Vec<Kubelet> = versions.iter().map(|version| kubelet(version)).collect();
        let error = refused(id, &kubelets);
        assert!(error.contains(says), "{id}: {error}");
    }
}

#[test]
fn reports_every_unsupported_line() {
    let error = refused("out-of-memory/mem-eater-without-limits", &[kubelet("v1.32.13")]);
    assert!(error.starts_with(
        "failed to export out-of-memory/mem-eater-without-limits: kind and kubectl cannot reproduce it"
    ));
    assert_eq!(error.matches("mem-eater-without-limits.yaml:").count(), 2, "{error}");
    assert!(error.contains("memory: 1500Mi"), "{error}");
    let lines = refused("relatives/drain", &[kubelet("v1.32.13")]);
    assert_eq!(lines.matches("drain.yaml:").count(), 4, "{lines}");
}

/// Returns the error of the export of a case with these keys.
fn refused_text(keys: &str) -> String {
    let text = format!("name: mine\nabout: Mine.\n{keys}expect: {{evicted: [a]}}\n");
    let case = evictlab_case::parse("own", "own/mine.yaml", "own/mine.yaml", text.as_bytes()).unwrap();
    let catalog = ImageCatalog::load(None).unwrap();
    let exported = recipe(&case, &[kubelet("v1.32.13")], &HOST, &|image| catalog.case_image(image));
    exported.unwrap_err().to_string()
}

const POD: &str = "pods:\n  - metadata: {name: a}\n    spec:\n      containers:\n";

/// Others could not use the export.
#[test]
fn rejects_images_without_registry() {
    let pod = format!("{POD}        - {{name: c, image: stress:1}}\n");
    let template = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: stress:1}]}}";
    let object = format!(
        "{POD}        - {{name: c, image: agnhost:2.52}}\nobjects:\n  - apiVersion: apps/v1\n    kind: Deployment\n    metadata: {{name: d}}\n    spec: {{selector: {{matchLabels: {{a: b}}}}, {template}}}\n"
    );
    for (keys, line) in [(pod, 7), (object, 12)] {
        let error = refused_text(&keys);
        assert!(error.contains("no registry has this image"), "{error}");
        assert!(error.contains(&format!("own/mine.yaml:{line}:")), "{error}");
    }
}

#[test]
fn rejects_every_setting_of_the_node() {
    for (setting, says) in [
        ("swap: 1Gi", "swap space is that of the host"),
        ("unused-image: 10Mi", "evictlab makes the unused image"),
        ("huge-pages: 2Mi", "huge pages are reserved on the host"),
    ] {
        let keys = format!("{POD}        - {{name: c, image: agnhost:2.52}}\nnode: {{{setting}}}\n");
        let error = refused_text(&keys);
        assert!(error.contains(says) && error.contains("own/mine.yaml:8:"), "{setting}: {error}");
    }
}

/// Every export is valid for shells and YAML parsers and contains no variable.
#[test]
fn every_case_is_exported_or_has_a_reason() {
    let catalog = ImageCatalog::load(None).unwrap();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut folders = 0;
    for case in shipped() {
        let id = case.id();
        match recipe(&case, &[kubelet("v1.36.2")], &HOST, &|image| catalog.case_image(image)) {
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
            Err(ExportError::Unsupported { problems, .. }) => {
                for problem in problems {
                    assert!(problem.spans.iter().all(|span| span.mark.is_some()), "{id}: {problem}");
                    reasons.entry(problem.message).or_default().push(id.clone());
                }
            }
            Err(other) => panic!("{id}: {other}"),
        }
    }
    let counted: Vec<String> = reasons.iter().map(|(why, ids)| format!("{:2} {why}", ids.len())).collect();
    insta::assert_snapshot!(format!("{folders} exports\n{}", counted.join("\n")));
}
