//! The image of `images/evictlab`, built from a static program without a network, and run without
//! one.
//!
//! `EVICTLAB_STATIC` names the program, which contains the program of the stress image;
//! `.ci/run container` builds both and runs this test.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;

/// Maximum size of the image in bytes.
const MAX_SIZE: u64 = 30_000_000;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trial = |name: &str, test: fn(&Image)| {
        Trial::ignorable_test(name, move || match program() {
            Ok(program) => {
                test(&Image::build(&program));
                Ok::<_, Failed>(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    };
    let trials = vec![
        trial("the_image_is_small_and_not_root", the_image_is_small_and_not_root),
        trial("the_image_runs_cases_on_the_model", the_image_runs_cases_on_the_model),
        trial("a_mounted_directory_gets_the_results", a_mounted_directory_gets_the_results),
        trial(
            "the_stress_image_needs_neither_sources_nor_cargo",
            the_stress_image_needs_neither_sources_nor_cargo,
        ),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Returns the static program, or why the tests are ignored.
fn program() -> Result<PathBuf, String> {
    let Some(program) = std::env::var_os("EVICTLAB_STATIC") else {
        return Err(
            "EVICTLAB_STATIC does not name a static evictlab; `.ci/run container` builds one".to_owned()
        );
    };
    if docker(&["info"]).status.success() {
        Ok(program.into())
    } else {
        Err("no Docker daemon answers".to_owned())
    }
}

fn docker(arguments: &[&str]) -> Output {
    let output = Command::new("docker").args(arguments).env("DOCKER_BUILDKIT", "0").output();
    output.unwrap_or_else(|error| panic!("docker: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An image that is deleted on drop.
struct Image {
    name: String,
    architecture: String,
}

impl Image {
    /// Builds the image as the release does, from a directory with the program and the license.
    fn build(program: &Path) -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let context = tempfile::tempdir().unwrap();
        let architecture =
            text(&docker(&["version", "--format", "{{.Server.Arch}}"]).stdout).trim().to_owned();
        for directory in ["work", &architecture] {
            fs::create_dir(context.path().join(directory)).unwrap();
        }
        fs::copy(program, context.path().join(&architecture).join("evictlab")).unwrap();
        fs::copy(project.join("LICENSE"), context.path().join(&architecture).join("LICENSE")).unwrap();
        fs::write(context.path().join("work/.gitkeep"), "").unwrap();
        let name = format!("localhost/evictlab/test:{}", std::process::id());
        let image = Self { name, architecture };
        let output = Command::new("docker")
            .args(["build", "--quiet", "--network", "none", "--tag", &image.name])
            .arg(format!("--build-arg=TARGETARCH={}", image.architecture))
            .arg(format!("--file={}", project.join("images/evictlab/Dockerfile").display()))
            .arg(context.path())
            .env("DOCKER_BUILDKIT", "0")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        image
    }

    /// Runs the image with a mounted directory, as the owner of this directory, with a read-only
    /// root file system.
    fn run_in(&self, directory: &Path, arguments: &[&str]) -> Output {
        let metadata = fs::metadata(directory).unwrap();
        let owner = format!("{}:{}", metadata.uid(), metadata.gid());
        let volume = format!("{}:/work", directory.display());
        self.run(&["--read-only", "--user", &owner, "--volume", &volume], arguments)
    }

    /// Runs the image without a network and without capabilities.
    fn run(&self, options: &[&str], arguments: &[&str]) -> Output {
        let run = ["run", "--rm", "--network", "none", "--cap-drop", "ALL"];
        docker(&[&run[..], options, &[&self.name], arguments].concat())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        docker(&["image", "rm", "--force", &self.name]);
    }
}

fn the_image_is_small_and_not_root(image: &Image) {
    let inspected: Value =
        serde_json::from_slice(&docker(&["image", "inspect", &image.name]).stdout).unwrap();
    let size = inspected[0]["Size"].as_u64().unwrap();
    assert!(size < MAX_SIZE, "{size} bytes");
    let user = inspected[0]["Config"]["User"].as_str().unwrap();
    assert_eq!(user, "65532:65532");
}

fn the_image_runs_cases_on_the_model(image: &Image) {
    let version = image.run(&[], &["--version"]);
    assert_eq!(text(&version.stdout).trim(), format!("evictlab {}", env!("CARGO_PKG_VERSION")));
    let output = image.run(&[], &["run", "nobody-offends", "--kubelet", "v1.31", "--kubelet", "v1.32"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains("| message/nobody-offends | passed"), "{stdout}");
}

/// As a user would: their directory, their user, and nothing else writable.
fn a_mounted_directory_gets_the_results(image: &Image) {
    let folder = tempfile::tempdir().unwrap();
    let output = image.run_in(folder.path(), &["run", "nobody-offends", "--output-dir", "results"]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(folder.path().join("results/artifacts/junit_evictlab.xml").is_file());
}

fn the_stress_image_needs_neither_sources_nor_cargo(image: &Image) {
    let folder = tempfile::tempdir().unwrap();
    let output = image.run_in(folder.path(), &["image", "build", "--output", "stress.tar"]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let archive = fs::read(folder.path().join("stress.tar")).unwrap();
    let manifest: Value = serde_json::from_slice(&file_in(&archive, "manifest.json")).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], "localhost/evictlab/stress:1");
    let layer = file_in(&archive, manifest[0]["Layers"][0].as_str().unwrap());
    let program = folder.path().join("stress");
    fs::write(&program, file_in(&layer, "stress")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let help = Command::new(&program).arg("help").output().unwrap();
    assert!(text(&help.stdout).starts_with("Consume a resource of the node"), "{help:?}");

    let other = image.run_in(folder.path(), &["image", "build", "--architecture", "riscv64"]);
    let stderr = text(&other.stderr);
    assert!(
        other.status.code() == Some(2)
            && stderr.contains("for riscv64: this evictlab contains its program for"),
        "{stderr}"
    );
}

/// Returns a file in a tar archive.
fn file_in(archive: &[u8], path: &str) -> Vec<u8> {
    let mut archive = tar::Archive::new(archive);
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut entry = entries.find(|entry| entry.path().unwrap().as_os_str() == path).unwrap();
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).unwrap();
    bytes
}
