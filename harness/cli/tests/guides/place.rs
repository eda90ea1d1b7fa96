//! The working directory of a guide.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::block::Block;
use crate::output::missing_line;
use crate::project;
use crate::served::Served;

/// Time after which an endless block is interrupted.
const INTERRUPT_AFTER: &str = "8s";
/// Time limit of the other blocks.
const TIME_LIMIT: &str = "900s";
/// Exit status of `timeout` after its time limit.
const TIMED_OUT: i32 = 124;

/// Parts of the project that are linked into the directory.
const REACHABLE: [&str; 8] =
    ["Cargo.toml", "harness", "cases", "kind-configs", "images", ".github", ".ci", "results/baseline.json"];

/// A directory like a fresh checkout with a built `evictlab`, which is first on the `PATH`, and
/// with its own home and state.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["home", "state", "artifacts", "results", "bin", "target/release"] {
            fs::create_dir_all(place.at(name)).unwrap();
        }
        for name in REACHABLE {
            symlink(project().join(name), place.at(name)).unwrap();
        }
        for name in ["bin/evictlab", "target/release/evictlab"] {
            symlink(env!("CARGO_BIN_EXE_evictlab"), place.at(name)).unwrap();
        }
        // `cargo install` uses the existing build in the project directory, without optimization.
        let cargo = format!(
            "#!/bin/sh\n[ \"$1\" != install ] || set -- \"$@\" --debug --offline\ncd '{}' && exec '{}' \"$@\"\n",
            project().display(),
            env!("CARGO")
        );
        fs::write(place.at("bin/cargo"), cargo).unwrap();
        fs::set_permissions(place.at("bin/cargo"), Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a block; returns an error with the output if it differs from the guide.
    pub fn run(&self, block: &Block) -> Result<(), String> {
        let said = self.at("said");
        let file = fs::File::create(&said).unwrap();
        // `timeout` sends the signal to all processes of the shell, as a terminal does.
        let mut command = self.command("timeout");
        command.args(if block.endless {
            ["--signal=INT", "--preserve-status", INTERRUPT_AFTER, "bash"]
        } else {
            ["--signal=TERM", "--kill-after=10s", TIME_LIMIT, "bash"]
        });
        let served = block.needs.iter().any(|need| need == "served").then(Served::new);
        if let Some(served) = &served {
            command.env("KUBECONFIG", &served.kubeconfig);
        }
        // Every command must succeed, except the last one with an expected exit status.
        let status = command
            .args(["-euo", "pipefail", "-c", &block.script])
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .status()
            .unwrap();
        let printed = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
        if status.code() == Some(TIMED_OUT) && block.exit != TIMED_OUT {
            return Err(format!("timed out after {TIME_LIMIT}:\n{}\n\n{printed}", block.script));
        }
        if status.code() != Some(block.exit) {
            return Err(format!(
                "{status}, and the guide says {}:\n{}\n\n{printed}",
                block.exit, block.script
            ));
        }
        match block.printed.as_ref().and_then(|shown| missing_line(shown, &printed)) {
            Some(line) => Err(format!("the guide shows a line that was not printed:\n{line}\n\n{printed}")),
            None => Ok(()),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env("PATH", format!("{}:{path}", self.at("bin").display()))
            .env("HOME", self.at("home"))
            .env("KUBECONFIG", self.at("home/.kube/config"))
            .env("EVICTLAB_STATE_DIR", self.at("state"))
            .env("ARTIFACTS", self.at("artifacts"))
            .env("CARGO_INSTALL_ROOT", self.at("home/.cargo"))
            .env("MANPAGER", "cat");
        for own in ["EVICTLAB_CASES", "ARTIFACTS_DIR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
            command.env_remove(own);
        }
        // Caches in the home directory, which guides do not change.
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        for (name, folder) in
            [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("DOCKER_CONFIG", ".docker")]
        {
            if std::env::var_os(name).is_none() {
                command.env(name, home.join(folder));
            }
        }
        command
    }
}

impl Drop for Place {
    /// The last block of a guide deletes its clusters; after a failure, they are deleted here.
    fn drop(&mut self) {
        let entries = fs::read_dir(self.at("state")).into_iter().flatten().flatten();
        let records =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "json"));
        for record in records {
            let name = record.file_stem().unwrap().to_str().unwrap();
            let deleted =
                self.command(env!("CARGO_BIN_EXE_evictlab")).args(["cluster", "delete", name]).status();
            eprintln!("cluster {name} was left; deleted: {deleted:?}");
        }
    }
}
