//! From the source tree to the program of the image.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::NAME;
use super::archive::{Built, architecture};
use super::cargo::cargo;

/// The tree that this program was built from.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What there is in a tree that the image can be built from.
const MANIFEST: &str = "images/stress/Cargo.toml";

/// The image cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is nothing to build it from.
    #[error(
        "the image {NAME} is evictlab's own, and there is no source tree here to build it from\nWhere there is one, `evictlab image build --output stress.tar`; then here `evictlab image load stress.tar`."
    )]
    NoSource,
    /// There is nothing to build it with.
    #[error(
        "the image {NAME} cannot be built: there is no `cargo` on the PATH\nInstall Rust (https://rustup.rs), or bring the image from a machine that has it: there `evictlab image build --output stress.tar`, here `evictlab image load stress.tar`."
    )]
    NoCargo,
    /// This machine is no Linux, and the image is.
    #[error(
        "the image {NAME} is a Linux program, and this machine is {host}\nBuild it on a Linux machine with a CPU as Docker's: `evictlab image build --output stress.tar`; then here `evictlab image load stress.tar`. Or name a target that is installed here, and has a linker: `evictlab image build --target TARGET`."
    )]
    NotLinux {
        /// What it is.
        host: String,
    },
    /// Cargo failed.
    #[error("the image {NAME} cannot be built: `{command}` failed\n{output}{}", advice(output))]
    Failed {
        /// The command line.
        command: String,
        /// What it said last.
        output: String,
    },
    /// Cargo could not be run, or what it built not be read.
    #[error("the image {NAME} cannot be built: {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// What the linker says that finds no static C library has an answer.
fn advice(output: &str) -> &'static str {
    match output.contains("-lc") || output.contains("crt1.o") {
        true => {
            "\nA static C library is missing: install it (Debian: libc6-dev, Fedora: glibc-static), or name another target: `evictlab image build --target TARGET`."
        }
        false => "",
    }
}

/// Where cargo's words go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// To this process's stderr.
    Shown,
    /// Into the error, if there is one.
    Kept,
}

/// The tree that the image is built from: the one that this program was built from, if it is still there; else the one here.
pub fn source() -> Option<PathBuf> {
    [Path::new(TREE), Path::new(".")]
        .into_iter()
        .find(|tree| tree.join(MANIFEST).is_file())
        .and_then(|tree| tree.canonicalize().ok())
}

/// Builds the program, static, for the target that is named, else for this machine; what was built before and has not changed is taken as
/// it is.
pub async fn build(tree: &Path, target: Option<&str>, words: Words) -> Result<Built, BuildError> {
    let target = match target {
        Some(target) => target.to_owned(),
        None => own_target(tree).await?,
    };
    let arguments = [
        "build",
        "--locked",
        "--package=evictlab-stress",
        "--bin=stress",
        "--profile=image",
        "--message-format=json-render-diagnostics",
        "--target",
        &target,
    ];
    let told = cargo(tree, &arguments, words).await?;
    let program = told.lines().find_map(executable).ok_or_else(|| BuildError::Failed {
        command: format!("cargo {}", arguments.join(" ")),
        output: "it names no program that it built".to_owned(),
    })?;
    let program = tokio::fs::read(&program)
        .await
        .map_err(|source| BuildError::Io { doing: format!("reading {}", program.display()), source })?;
    Ok(Built { program, architecture: architecture(&target).to_owned() })
}

/// This machine's own target, if it is a Linux.
async fn own_target(tree: &Path) -> Result<String, BuildError> {
    let said = cargo(tree, &["-vV"], Words::Kept).await?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().trim();
    match host.contains("-linux-") {
        true => Ok(host.to_owned()),
        false => Err(BuildError::NotLinux { host: host.to_owned() }),
    }
}

/// The program that a line of cargo's names.
fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let ours = message["reason"] == "compiler-artifact" && message["target"]["name"] == "stress";
    ours.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let lines = [
            r#"{"reason":"compiler-artifact","target":{"name":"lexopt"},"executable":null}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"stress"},"executable":"/t/image/stress"}"#,
            r#"{"reason":"build-finished","success":true}"#,
            "no message",
        ];
        let found: Vec<_> = lines.into_iter().map(executable).collect();
        assert_eq!(found, [None, Some(PathBuf::from("/t/image/stress")), None, None]);
    }

    #[test]
    fn a_missing_c_library_is_told_with_its_package() {
        let failed =
            |output: &str| BuildError::Failed { command: "cargo".to_owned(), output: output.to_owned() };
        assert!(failed("ld: cannot find -lc: No such file").to_string().contains("Fedora: glibc-static"));
        assert!(!failed("error[E0425]").to_string().contains("glibc"));
    }

    #[tokio::test]
    async fn what_cargo_says_is_in_the_error() {
        let tree = source().unwrap();
        let error = build(&tree, Some("no-such-target"), Words::Kept).await.unwrap_err().to_string();
        assert!(
            error.contains("--target no-such-target` failed\n") && error.contains("no-such-target"),
            "{error}"
        );
        let error = build(Path::new("/"), None, Words::Kept).await.unwrap_err().to_string();
        assert!(error.contains("could not find `Cargo.toml`"), "{error}");
    }
}
