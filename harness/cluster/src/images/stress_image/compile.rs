//! Builds the program of the image from the source tree.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::cargo::{CargoOutput, cargo};
use super::error::BuildError;
use super::program::{StressProgram, architecture};

/// Source tree that evictlab was built from.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// File that every source tree contains.
const MANIFEST: &str = "images/stress/Cargo.toml";

/// Returns the source tree of the image: the one that evictlab was built from, else the current
/// directory; `None` if neither contains the program.
pub fn source_tree() -> Option<PathBuf> {
    [Path::new(TREE), Path::new(".")]
        .into_iter()
        .find(|tree| tree.join(MANIFEST).is_file())
        .and_then(|tree| tree.canonicalize().ok())
}

/// Builds the program statically for a target, by default for this machine. An unchanged program is
/// not built again.
pub async fn build(
    tree: &Path,
    target: Option<&str>,
    output: CargoOutput,
) -> Result<StressProgram, BuildError> {
    let target = match target {
        Some(target) => target.to_owned(),
        None => host_target(tree).await?,
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
    let messages = cargo(tree, &arguments, output).await?;
    let program = messages.lines().find_map(executable).ok_or_else(|| BuildError::Failed {
        command: format!("cargo {}", arguments.join(" ")),
        output: "the messages of cargo do not contain the built program".to_owned(),
    })?;
    let program = tokio::fs::read(&program)
        .await
        .map_err(|source| BuildError::Io { operation: format!("read {}", program.display()), source })?;
    Ok(StressProgram { program, architecture: architecture(&target).to_owned() })
}

/// Returns the target triple of this machine.
///
/// # Errors
/// Cargo failed, or this machine does not run Linux.
async fn host_target(tree: &Path) -> Result<String, BuildError> {
    linux_host(&cargo(tree, &["-vV"], CargoOutput::Captured).await?)
}

/// Returns the host in the output of `cargo -vV`.
fn linux_host(version: &str) -> Result<String, BuildError> {
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.map(|host| host.trim().to_owned()).ok_or_else(|| BuildError::Failed {
        command: "cargo -vV".to_owned(),
        output: format!("the output does not contain the host:\n{}", version.trim_end()),
    })?;
    if host.contains("-linux-") { Ok(host) } else { Err(BuildError::NotLinux { host }) }
}

/// A message of `cargo build --message-format=json`.
#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    target: Option<CargoTarget>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
}

/// Returns the path of the built program, if this line of cargo's output contains it.
fn executable(line: &str) -> Option<PathBuf> {
    let message: CargoMessage = serde_json::from_str(line).ok()?;
    let is_program = message.reason == "compiler-artifact" && message.target?.name == "stress";
    message.executable.filter(|_| is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_program_in_the_messages_of_cargo() {
        let lines = [
            r#"{"reason":"compiler-artifact","target":{"name":"lexopt"},"executable":null}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"stress"},"executable":"/t/image/stress"}"#,
            r#"{"reason":"build-finished","success":true}"#,
            "not a message",
        ];
        let found: Vec<_> = lines.into_iter().map(executable).collect();
        assert_eq!(found, [None, Some(PathBuf::from("/t/image/stress")), None, None]);
    }

    #[test]
    fn a_host_that_is_not_stated_is_not_another_system() {
        let host = |version: &str| linux_host(version).map_err(|error| error.to_string());
        let linux = "cargo 1.89.0\nhost: aarch64-unknown-linux-gnu\nos: Debian\n";
        assert_eq!(host(linux), Ok("aarch64-unknown-linux-gnu".to_owned()));
        let mac = host("host: aarch64-apple-darwin").unwrap_err();
        assert!(mac.contains("this machine is aarch64-apple-darwin"), "{mac}");
        let unknown = host("cargo 1.89.0\n").unwrap_err();
        assert!(unknown.contains("`cargo -vV` failed:\nthe output does not contain the host"), "{unknown}");
    }

    #[tokio::test]
    async fn errors_contain_the_output_of_cargo() {
        let tree = source_tree().unwrap();
        let error =
            build(&tree, Some("no-such-target"), CargoOutput::Captured).await.unwrap_err().to_string();
        assert!(
            error.contains("--target no-such-target` failed:\n") && error.contains("no-such-target"),
            "{error}"
        );
        let error = build(Path::new("/"), None, CargoOutput::Captured).await.unwrap_err().to_string();
        assert!(error.contains("could not find `Cargo.toml`"), "{error}");
    }
}
