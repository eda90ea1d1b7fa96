//! An embedded cluster for blocks that need an existing cluster.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A cluster that is served until it is dropped.
pub struct Served {
    server: Child,
    /// Folder of its record.
    _state: TempDir,
    /// Path of its kubeconfig.
    pub kubeconfig: String,
}

impl Served {
    pub fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_evictlab"))
            .args(["cluster", "create", "--kubelet", "v1.36", "--eviction-hard", "memory.available<2Gi"])
            .env("EVICTLAB_STATE_DIR", state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(server.stdout.take().unwrap());
        let mut lines = said.lines().map(Result::unwrap);
        let kubeconfig =
            lines.find_map(|line| line.strip_prefix("export KUBECONFIG=").map(str::to_owned)).unwrap();
        Self { server, _state: state, kubeconfig }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _gone = self.server.kill();
        let _ended = self.server.wait();
    }
}
