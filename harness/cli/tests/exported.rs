//! An exported directory, run with only kind and kubectl.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

#[expect(dead_code, reason = "the tests of interrupts need more of it")]
mod test_cluster;

use std::fs;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use test_cluster::{TestCluster, kubelet};

/// Image of the case.
const IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One cluster at a time: the machine may not have the memory for two.
    arguments.test_threads = Some(1);
    let trial = Trial::ignorable_test("an_exported_folder_repeats_its_case", || match able() {
        Ok(kubelet) => {
            repeats_its_case(&kubelet);
            Ok::<_, Failed>(Completion::Completed)
        }
        Err(why) => Ok(Completion::ignored_with(why)),
    });
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

/// Returns a kubelet whose image is in Docker, or why the test is ignored.
fn able() -> Result<String, String> {
    let kubelet = kubelet()?;
    let runs = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !runs(Command::new("kubectl").args(["version", "--client"])) {
        return Err("the command `kubectl` is not here".to_owned());
    }
    if runs(Command::new("docker").args(["image", "inspect", IMAGE])) {
        Ok(kubelet)
    } else {
        Err(format!("{IMAGE} is not in Docker"))
    }
}

fn repeats_its_case(kubelet: &str) {
    let test_cluster = TestCluster::new();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("folder");
    let names_sidecars = kubelet >= "v1.32";
    test_cluster.evictlab(&[
        "export",
        "sidecars-are-named",
        "--kubelet",
        kubelet,
        "--output-dir",
        dir.to_str().unwrap(),
    ]);
    let script = fs::read_to_string(dir.join("run.sh")).unwrap();
    // The cluster gets a unique name.
    for file in ["run.sh", "manifests.yaml"] {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        fs::write(dir.join(file), text.replace("sidecars-are-named", &test_cluster.cluster)).unwrap();
    }
    assert!(script.contains("cluster=sidecars-are-named"), "{script}");
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, "mine").unwrap();
    let ran =
        Command::new(dir.join("run.sh")).env("KUBECONFIG", &kubeconfig).env_remove("KEEP").output().unwrap();
    let [out, err] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(ran.status.success(), "{}\n{out}\n{err}", ran.status);
    let offenders = out.lines().find(|line| line.contains("offending_containers")).unwrap();
    assert!(offenders.contains("el1"), "{out}");
    assert_eq!(offenders.contains("el-sidecar1"), names_sidecars, "{out}");
    assert!(out.contains("alloc: Failed Evicted"), "{out}");
    let evidence = fs::read_to_string(dir.join("evidence.yaml")).unwrap();
    assert!(evidence.contains("reason: Evicted"), "{evidence}");
    assert_eq!(fs::read_to_string(&kubeconfig).unwrap(), "mine");
    test_cluster.assert_nothing_is_left();
}
