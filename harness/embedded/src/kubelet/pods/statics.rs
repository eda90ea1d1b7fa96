//! Static pods: those of files on the node (`pkg/kubelet/config/file.go`, `common.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Kubelet, PodsEvent};
use crate::kubelet::log::Level;
use crate::machine::Machine;
use crate::registry;
use crate::world::Ctx;

/// How long the kubelet takes to look at files that have changed. No chance is in it: files change where there are no static pods too.
const SOON: Duration = Duration::from_millis(10);

/// What the kubelet writes on a pod of a file: where it comes from, and a hash that is its uid too.
const SOURCE: &str = "kubernetes.io/config.source";
const HASH: &str = "kubernetes.io/config.hash";
const SEEN: &str = "kubernetes.io/config.seen";

/// Whether a pod is one of a file.
pub(super) fn is_static(object: &Value) -> bool {
    object["metadata"]["annotations"][SOURCE] == "file"
}

impl Kubelet {
    /// Where the files are; none if there are to be no static pods.
    pub fn manifests(&self) -> Option<&str> {
        self.config.file.get("staticPodPath").and_then(Value::as_str).filter(|path| !path.is_empty())
    }

    /// Files of the node have changed, maybe those of static pods: inotify tells.
    pub fn files_changed(&mut self, ctx: &mut Ctx) {
        if self.running && !self.pods.reading {
            self.pods.reading = true;
            ctx.agenda.at(ctx.now + SOON, self.due(PodsEvent::Manifests));
        }
    }

    /// Reads the files: pods that are new to it begin, those of files that are gone or changed end.
    pub(super) fn read_manifests(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        self.pods.reading = false;
        let files = self.manifests().map(|path| machine.files(path)).unwrap_or_default();
        let mut wanted = BTreeMap::new();
        for (name, text) in files {
            // As editors' copies, hidden files are left alone.
            if name.starts_with('.') {
                continue;
            }
            match self.static_pod(&name, &text, ctx) {
                Ok((uid, pod)) => {
                    wanted.insert(uid, pod);
                }
                Err(problem) => {
                    let pairs = format!("path={name:?} err={problem:?}");
                    self.say(Level::Error, "file_linux.go:109", "Unable to process watch event", &pairs, ctx);
                }
            }
        }
        let known: Vec<String> = self
            .pods
            .workers
            .iter()
            .filter(|(_, worker)| is_static(&worker.object) && !worker.gone)
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in known.iter().filter(|uid| !wanted.contains_key(*uid)) {
            self.with_worker(uid, |kubelet, worker| {
                worker.gone = true;
                if worker.stage == super::Stage::Syncing {
                    kubelet.terminate(worker, None, None, machine, ctx);
                }
            });
            self.drop_static_if_over(uid, machine, ctx);
        }
        for (uid, pod) in wanted {
            if !self.pods.workers.contains_key(&uid) {
                self.add_pod(Arc::new(pod), machine, ctx);
                self.wait_for_namesakes(&uid);
            }
        }
    }

    /// Forgets a static pod of which nothing is left, and its mirror.
    pub(super) fn drop_static_if_over(&mut self, uid: &str, machine: &mut Machine, ctx: &mut Ctx) {
        let Some(worker) = self.pods.workers.get(uid) else { return };
        if is_static(&worker.object) && worker.gone && worker.stage == super::Stage::Finished {
            super::mirror::delete(&worker.manifest, Some(uid), ctx);
        }
        self.drop_if_over(uid, machine);
    }

    /// A static pod begins when one of the same name has ended: that of the file as it was.
    fn wait_for_namesakes(&mut self, uid: &str) {
        let Some(own) = self.pods.workers.get(uid) else { return };
        let name = (own.manifest.namespace.clone(), own.manifest.name.clone());
        let same = self.pods.workers.iter().filter(|(other, worker)| {
            *other != uid
                && worker.could_run()
                && (&worker.manifest.namespace, &worker.manifest.name) == (&name.0, &name.1)
        });
        let before: Vec<String> = same.map(|(other, _)| other.clone()).collect();
        if let Some(own) = self.pods.workers.get_mut(uid) {
            own.after.extend(before);
        }
    }

    /// The pod of a file, with its uid (`applyDefaults`).
    fn static_pod(&self, file: &str, text: &[u8], ctx: &Ctx) -> Result<(String, Value), String> {
        let mut pod: Value = serde_yaml::from_slice(text).map_err(|error| error.to_string())?;
        if pod["kind"] != "Pod" || pod["apiVersion"] != "v1" {
            return Err("couldn't parse as pod: it is no Pod of v1".to_owned());
        }
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err("invalid pod: name is needed for the pod".to_owned());
        }
        let node = &self.identity.node;
        let uid = match pod["metadata"]["uid"].as_str() {
            Some(uid) if !uid.is_empty() => uid.to_owned(),
            _ => format!("{:032x}", fnv(format!("{pod}host:{node}file:{file}").as_bytes())),
        };
        let metadata = &mut pod["metadata"];
        metadata["uid"] = json!(uid);
        metadata["name"] = json!(format!("{name}-{}", node.to_lowercase()));
        if metadata["namespace"].as_str().is_none_or(str::is_empty) {
            metadata["namespace"] = json!("default");
        }
        let seen = ctx.epoch().at(ctx.now).strftime("%Y-%m-%dT%H:%M:%S%.9fZ").to_string();
        for (key, value) in [(HASH, uid.as_str()), (SEEN, &seen), (SOURCE, "file")] {
            metadata["annotations"][key] = json!(value);
        }
        pod["spec"]["nodeName"] = json!(node);
        let all = json!({"operator": "Exists", "effect": "NoExecute"});
        match &mut pod["spec"]["tolerations"] {
            Value::Array(tolerations) if tolerations.contains(&all) => {}
            Value::Array(tolerations) => tolerations.push(all),
            other => *other = json!([all]),
        }
        registry::complete_pod(&mut pod, &self.identity.version).map_err(|status| status.message)?;
        pod["status"] = json!({"phase": "Pending"});
        Ok((uid, pod))
    }
}

/// FNV-1a of 128 bits, as Go's `fnv.New128a`. What it is of is not what Go hashes: all that shows is that it is a hash.
fn fnv(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
