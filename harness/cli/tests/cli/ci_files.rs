//! The shell parts of the files for CI systems: `action.yml`, the workflows, the jobs for GitLab
//! and for Prow.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_yaml::Value;
use tempfile::TempDir;

const REPOSITORY: &str = "YOUR-ORGANIZATION/evictlab";

fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

fn yaml(file: &str) -> Value {
    serde_yaml::from_str(&fs::read_to_string(project(file)).unwrap()).unwrap()
}

/// A machine of a CI system: a checkout, a `PATH`, and the files of a release.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        for directory in ["bin", "work", "temp", "release"] {
            fs::create_dir(machine.at(directory)).unwrap();
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Adds a script to the `PATH`.
    fn install_script(&self, name: &str, script: &str) {
        let file = self.at("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds the built evictlab to the `PATH`.
    fn install_evictlab(&self) {
        symlink(env!("CARGO_BIN_EXE_evictlab"), self.at("bin/evictlab")).unwrap();
    }

    /// Writes the archive and the checksum of a release; its program is the built one, or a script.
    fn release(&self, directory: &Path, script: Option<&str>) {
        fs::create_dir_all(directory).unwrap();
        let program = self.at("temp/evictlab-program");
        match script {
            Some(script) => fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap(),
            None => {
                fs::write(&program, format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_evictlab")))
                    .unwrap()
            }
        }
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let target = match std::env::consts::OS {
            "linux" => format!("{}-unknown-linux-musl", std::env::consts::ARCH),
            _ => format!("{}-apple-darwin", std::env::consts::ARCH),
        };
        let made = Command::new("sh")
            .args(["-euc", "mv \"$2\" evictlab; tar -czf \"evictlab-$1.tar.gz\" evictlab; sha256sum \"evictlab-$1.tar.gz\" > \"evictlab-$1.sha256\"", "sh", &target])
            .arg(&program)
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    /// Runs a script as GitHub does, with these variables.
    fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.at("work"))
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.at("bin").display()))
            .env("RUNNER_TEMP", self.at("temp"))
            .env("GITHUB_PATH", self.at("github-path"))
            .env("CI_PROJECT_DIR", self.at("work"))
            .env("ARTIFACTS", self.at("artifacts"));
        for variable in ["EVICTLAB_CASES", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
            command.env_remove(variable);
        }
        command.envs(variables.iter().copied()).output().unwrap()
    }
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the script of a step of `action.yml`.
fn step(name: &str) -> String {
    script(&yaml("action.yml")["runs"]["steps"], name)
}

/// Returns the script of the step with this name.
fn script(steps: &Value, name: &str) -> String {
    let mut steps = steps.as_sequence().unwrap().iter();
    let step = steps.find(|step| step["name"].as_str() == Some(name)).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

/// Variables of the step that runs evictlab, with the defaults of the action.
fn run_step(machine: &Machine, inputs: &[(&str, &str)]) -> Output {
    let mut variables = BTreeMap::from([
        ("BACKEND", "embedded"),
        ("KUBELETS", "v1.31 v1.32"),
        ("SELECT", "nobody-offends"),
        ("BASELINE", "built-in"),
        ("ARGUMENTS", ""),
        ("TIMEOUT", ""),
        ("OUTPUT_DIR", "evictlab-results"),
    ]);
    variables.extend(inputs.iter().copied());
    machine.run(&step("Run evictlab"), &variables.into_iter().collect::<Vec<_>>())
}

#[test]
fn the_action_runs_cases_and_fails_on_changes() {
    let machine = Machine::new();
    machine.install_evictlab();
    let output = run_step(&machine, &[]);
    assert!(output.status.success(), "{}", printed(&output));
    assert!(printed(&output).contains("Since the baseline: 0 changed, 2 unchanged."), "{}", printed(&output));
    assert!(machine.at("work/evictlab-results/artifacts/junit_evictlab.xml").is_file());

    let all = run_step(&machine, &[("KUBELETS", ""), ("BASELINE", "none"), ("OUTPUT_DIR", "all")]);
    assert!(printed(&all).contains("v1.27") && all.status.success(), "{}", printed(&all));

    let expected = r#"{"message/nobody-offends": {"v1.31": "failed", "v1.32": "passed"}}"#;
    fs::write(machine.at("work/ours.json"), expected).unwrap();
    let changed = run_step(&machine, &[("BASELINE", "ours.json"), ("OUTPUT_DIR", "changed")]);
    assert_eq!(changed.status.code(), Some(5), "{}", printed(&changed));
    assert!(printed(&changed).contains("1 changed, 1 unchanged."), "{}", printed(&changed));

    let timed_out = run_step(&machine, &[("TIMEOUT", "1s"), ("OUTPUT_DIR", "timed-out")]);
    assert_eq!(timed_out.status.code(), Some(4), "{}", printed(&timed_out));
    assert!(printed(&timed_out).contains("0 changed"), "{}", printed(&timed_out));
}

#[test]
fn inputs_of_the_action_are_not_evaluated() {
    let machine = Machine::new();
    machine.install_script("evictlab", "printf '<%s>' \"$@\"");
    let output = run_step(
        &machine,
        &[
            ("SELECT", "$(touch owned) *"),
            ("ARGUMENTS", "`touch owned`;touch owned"),
            ("KUBELETS", "a$(touch owned)"),
        ],
    );
    let expected = "<run><--backend><embedded><--output-dir><evictlab-results><--kubelet><a$(touch><--kubelet><owned)><--baseline=built-in>\
                    <`touch><owned`;touch><owned><$(touch><owned)><*>";
    assert_eq!(printed(&output), expected);
    assert!(!machine.at("work/owned").exists());

    let inputs = [("KUBELETS", "v1.37"), ("BASELINE", "none"), ("SELECT", "limits  message")];
    for (arguments, expected) in [
        ("--shard 1/3", "<--shard><1/3><limits><message>"),
        ("--label-filter\nSlow && !Serial\n", "<--label-filter><Slow && !Serial><limits><message>"),
        (
            "--label-filter=Slow || \"*\"\n\n--json\n",
            "<--label-filter=Slow || \"*\"><--json><limits><message>",
        ),
    ] {
        let output = run_step(&machine, &[&inputs[..], &[("ARGUMENTS", arguments)]].concat());
        let start = "<run><--backend><embedded><--output-dir><evictlab-results><--kubelet><v1.37>";
        assert_eq!(printed(&output), format!("{start}{expected}"));
    }

    // Expressions in a script would be replaced before the shell reads the script.
    for step in yaml("action.yml")["runs"]["steps"].as_sequence().unwrap() {
        assert!(!step["run"].as_str().unwrap_or_default().contains("${{"), "{step:?}");
    }
}

#[test]
fn the_action_installs_a_release_and_checks_it() {
    let machine = Machine::new();
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    let directory = machine.at("release").join(REPOSITORY).join("releases/download").join(&version);
    machine.release(&directory, None);
    let gh = "case $* in *--help) echo ' --source-ref string';; *) echo \"gh $*\";; esac";
    machine.install_script("gh", gh);
    let server = format!("file://{}", machine.at("release").display());
    let variables = [
        ("VERSION", version.as_str()),
        ("REPOSITORY", REPOSITORY),
        ("ACTION", "."),
        ("GITHUB_SERVER_URL", &server),
    ];
    let output = machine.run(&step("Install evictlab"), &variables);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(&format!("evictlab {}", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(
        text.contains("gh attestation verify evictlab-")
            && text.contains("--repo YOUR-ORGANIZATION/evictlab --source-ref refs/tags/v"),
        "{text}"
    );
    let bin = fs::read_to_string(machine.at("github-path")).unwrap();
    assert!(Path::new(bin.trim()).join("evictlab").is_file(), "{bin}");

    // One that does not know the option, or the command.
    machine.install_script("gh", "echo \"unknown command: $*\" >&2; exit 1");
    let old = machine.run(&step("Install evictlab"), &variables);
    assert!(old.status.success(), "{}", printed(&old));
    assert!(
        printed(&old).contains("::notice::gh with `attestation verify --source-ref`"),
        "{}",
        printed(&old)
    );
    assert!(!printed(&old).contains("unknown command"), "{}", printed(&old));
    let missing =
        machine.run(&step("Install evictlab"), &[&variables[..], &[("VERSION", "v9.0.0")]].concat());
    let text = printed(&missing);
    assert_eq!(missing.status.code(), Some(1), "{text}");
    let error =
        "of release v9.0.0 of YOUR-ORGANIZATION/evictlab: check `version` (nightly.yml: EVICTLAB_VERSION)";
    assert!(text.contains("::error::cannot download evictlab-") && text.contains(error), "{text}");

    for file in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "gz") {
            fs::write(file, "another archive").unwrap();
        }
    }
    fs::remove_file(machine.at("github-path")).unwrap();
    let refused = machine.run(&step("Install evictlab"), &variables);
    assert!(!refused.status.success() && printed(&refused).contains("FAILED"), "{}", printed(&refused));
    assert!(!machine.at("github-path").exists(), "a program with a wrong checksum is not installed");
}

/// The version that the files install is that of the workspace.
#[test]
fn files_for_ci_name_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let action = yaml("action.yml");
    assert_eq!(action["inputs"]["version"]["default"].as_str(), Some(format!("v{version}").as_str()));
    for (file, expected) in [
        (
            ".ci/prow/evictlab-periodics.yaml",
            vec![format!("/download/v{version}\n"), format!("/evictlab:{version}\n")],
        ),
        (".ci/gitlab/evictlab.gitlab-ci.yml", vec![format!("/download/v{version}\n")]),
        ("harness/guides/nightly.md", vec![format!("/evictlab@v{version}\n")]),
        ("harness/guides/install.md", vec![format!("/evictlab:{version} ")]),
    ] {
        let text = fs::read_to_string(project(file)).unwrap();
        for expected in expected {
            assert!(text.contains(&expected), "{file}: {expected}");
        }
    }
}

/// Dependabot does not update these: all files install one version of kind, and the gate runs on a
/// node image of the catalog.
#[test]
fn files_for_ci_agree_on_kind() {
    let read = |file: &str| fs::read_to_string(project(file)).unwrap();
    let action = yaml("action.yml");
    let version = action["inputs"]["kind-version"]["default"].as_str().unwrap();
    let ci = read(".github/workflows/ci.yml");
    let installed = &yaml(".github/workflows/ci.yml")["jobs"]["kind"]["steps"];
    for (steps, expected) in [(&action["runs"]["steps"], "${{ inputs.kind-version }}"), (installed, version)]
    {
        let mut steps = steps.as_sequence().unwrap().iter();
        let install = steps
            .find(|step| step["uses"].as_str().is_some_and(|action| action.starts_with("helm/kind-action@")));
        let with = &install.unwrap()["with"];
        assert_eq!(with["version"].as_str(), Some(expected));
        // The end of the job deletes the cluster and the registry of these names.
        for name in ["cluster_name", "registry_name"] {
            assert_eq!(with[name].as_str(), Some("evictlab-installs-only"), "{with:?}");
        }
    }
    for file in [".ci/prow/evictlab-periodics.yaml", ".ci/gitlab/evictlab.gitlab-ci.yml"] {
        assert!(read(file).contains(&format!("/dl/{version}/kind-linux-amd64\n")), "{file}: {version}");
    }
    let image = regex::Regex::new(r"v1\\\.(\d+)\\\.(\d+): ").unwrap().captures(&ci).unwrap();
    let node = format!("  v1.{}.{}: kindest/node:", &image[1], &image[2]);
    assert!(read("images/images.lock").contains(&node), "{node}");
}

#[test]
fn the_gitlab_job_installs_a_release_and_runs_the_model() {
    let machine = Machine::new();
    machine.release(&machine.at("release"), None);
    let file = yaml(".ci/gitlab/evictlab.gitlab-ci.yml");
    let lines = |job: &str, key: &str| -> Vec<String> {
        let lines = file[job][key].as_sequence().unwrap();
        lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    };
    let script = [lines(".evictlab", "before_script"), lines("evictlab-model", "script")].concat().join("\n");
    let server = format!("file://{}", machine.at("release").display());
    let output = machine.run(&script, &[("EVICTLAB", &server), ("SELECT", "nobody-offends")]);
    assert!(output.status.success(), "{}", printed(&output));
    let report =
        file[".evictlab"]["artifacts"]["reports"]["junit"].as_str().unwrap().replace('*', "evictlab");
    assert!(machine.at("work").join(report).is_file());

    machine.release(&machine.at("release"), Some("printf '<%s>' \"$@\""));
    let output = machine.run(&script, &[("EVICTLAB", &server), ("SELECT", "limits *")]);
    assert!(printed(&output).ends_with("<limits><*>"), "{}", printed(&output));
}

/// Only a release that does not exist, or a draft, is replaced.
#[test]
fn a_published_release_is_not_replaced() {
    let steps = &yaml(".github/workflows/release.yml")["jobs"]["draft"]["steps"];
    let script = script(steps, "Check that the release is not published");
    for (gh, is_replaced) in [
        ("echo true", true),
        ("echo false", false),
        ("echo 'release not found' >&2; exit 1", true),
        ("echo 'HTTP 502: Bad Gateway' >&2; exit 1", false),
    ] {
        let machine = Machine::new();
        machine.install_script("gh", gh);
        let output = machine.run(&script, &[("TAG", "v0.1.0")]);
        assert_eq!(output.status.success(), is_replaced, "{gh}: {}", printed(&output));
    }
}

/// Docker in Docker is not available here: the script runs up to the command with kind.
#[test]
fn the_prow_job_checks_its_programs_and_passes_its_arguments() {
    let machine = Machine::new();
    machine.release(&machine.at("release"), Some("kind; printf '<%s>' \"$@\""));
    fs::write(machine.at("release/kind-linux-amd64"), "#!/bin/sh\necho kind is on the PATH\n").unwrap();
    let sum = Command::new("sha256sum").arg(machine.at("release/kind-linux-amd64")).output().unwrap();
    let sum = printed(&sum).split(' ').next().unwrap().to_owned();
    let jobs = yaml(".ci/prow/evictlab-periodics.yaml");
    let job = &jobs["periodics"][1]["spec"]["containers"][0];
    let script = job["args"][2].as_str().unwrap();
    let server = format!("file://{}", machine.at("release").display());
    let kind = format!("{server}/kind-linux-amd64");
    let run =
        |sum: &str| machine.run(script, &[("EVICTLAB", &server), ("KIND", &kind), ("KIND_SHA256", sum)]);
    let output = run(&sum);
    let text = printed(&output);
    let arguments = "kind is on the PATH\n<run><--backend><kind><--kubelet><v1.37>";
    assert!(output.status.success() && text.contains(arguments), "{text}");
    let refused = run(&"0".repeat(64));
    assert!(!refused.status.success() && !printed(&refused).contains("<run>"), "{}", printed(&refused));
    for job in jobs["periodics"].as_sequence().unwrap() {
        assert!(job["cluster"].is_string() && job["interval"].is_string(), "{job:?}");
        // TestLabelsBeingSet of kubernetes/test-infra.
        let label = |name: &str| job["labels"][name].as_str().unwrap_or_default();
        let repository = format!("{}/{}", label("prow.k8s.io/refs.org"), label("prow.k8s.io/refs.repo"));
        assert_eq!(repository, REPOSITORY);
    }
}

/// Images of other projects are pinned by a digest: a tag can name another image tomorrow. Those
/// of test-infra have a tag for each build.
#[test]
fn images_are_pinned() {
    let image = regex::Regex::new(r"(?m)^ *(?:- )?(?:image|IMAGE): +(\S+)$").unwrap();
    let pinned = regex::Regex::new(
        r"@sha256:[0-9a-f]{64}$|^ghcr\.io/YOUR-ORGANIZATION/|/k8s-staging-test-infra/.*:v\d{8}-",
    )
    .unwrap();
    let workflows = fs::read_dir(project(".github/workflows")).unwrap().map(|entry| entry.unwrap().path());
    let others = [".ci/gitlab/evictlab.gitlab-ci.yml", ".ci/prow/evictlab-periodics.yaml"].map(project);
    let mut count = 0;
    for file in workflows.chain(others) {
        for found in image.captures_iter(&fs::read_to_string(&file).unwrap()) {
            // An image of this repository, by an expression.
            if !found[1].starts_with("${{") {
                count += 1;
                assert!(pinned.is_match(&found[1]), "{}: {}", file.display(), &found[1]);
            }
        }
    }
    assert!(count > 3, "{count} images were found");
}

/// Every action of the workflows is pinned by a commit, with its version as a comment.
#[test]
fn actions_are_pinned() {
    let pin = regex::Regex::new(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$").unwrap();
    let workflows = fs::read_dir(project(".github/workflows")).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in workflows.chain([project("action.yml")]) {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let Some(action) = line.trim().trim_start_matches("- ").strip_prefix("uses: ") else { continue };
            count += 1;
            assert!(action.starts_with("./") || pin.is_match(action), "{}: {action}", file.display());
        }
    }
    assert!(count > 30, "{count} actions were found");
}
