//! Static pods from files (`pkg/kubelet/config/file.go`, `common.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::pod::CONFIG_SOURCE_ANNOTATION;
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::mirror::{self, is_static};
use super::worker::Stage;
use crate::apiserver;
use crate::context::SimContext;
use crate::kubelet::event::PodEvent;
use crate::kubelet::log::Level;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;
use crate::resource::{Kind, ObjectExt, Phase, PodStatus, parse_yaml};

/// Delay between a change of a file and its handling. Constant, so that a file change on a node
/// without static pods does not advance the random generator.
const READ_DELAY: Duration = Duration::from_millis(10);

const CONFIG_HASH_ANNOTATION: &str = "kubernetes.io/config.hash";
const CONFIG_SEEN_ANNOTATION: &str = "kubernetes.io/config.seen";

impl Kubelet {
    /// Returns the directory of manifests, or `None` without static pods.
    pub(crate) fn manifest_dir(&self) -> Option<&str> {
        self.config.file.get("staticPodPath").and_then(Value::as_str).filter(|path| !path.is_empty())
    }

    /// Handles the change of a file on the node (inotify).
    pub(crate) fn files_changed(&mut self, ctx: &mut SimContext) {
        if self.running && !self.pods.read_scheduled {
            self.pods.read_scheduled = true;
            self.schedule_pod(ctx.now + READ_DELAY, PodEvent::Manifests, ctx);
        }
    }

    /// Reads the manifests: starts new pods, and ends pods whose manifest was changed or removed.
    pub(super) fn read_manifests(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        self.pods.read_scheduled = false;
        let files = self.manifest_dir().map(|path| machine.files(path)).unwrap_or_default();
        let mut wanted = BTreeMap::new();
        for (name, text) in files {
            // Hidden files, such as backups of editors, are ignored.
            if name.starts_with('.') {
                continue;
            }
            match self.static_pod(&name, &text, ctx) {
                Ok((uid, pod)) => {
                    wanted.insert(uid, pod);
                }
                Err(problem) => {
                    let pairs = format!("path={name:?} err={problem:?}");
                    self.write_log(
                        Level::Error,
                        "file_linux.go:109",
                        "Unable to process watch event",
                        &pairs,
                        ctx,
                    );
                }
            }
        }
        let known: Vec<String> = self
            .pods
            .workers
            .iter()
            .filter(|(_, worker)| is_static(&worker.object) && !worker.removed)
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in known.iter().filter(|uid| !wanted.contains_key(*uid)) {
            self.with_worker(uid, |kubelet, worker| {
                worker.removed = true;
                if worker.stage == Stage::Syncing {
                    kubelet.terminate(worker, None, None, machine, ctx);
                }
            });
            self.forget_static_if_finished(uid, machine, ctx);
        }
        for (uid, pod) in wanted {
            if !self.pods.workers.contains_key(&uid) {
                self.add_pod(Arc::new(pod), None, machine, ctx);
                self.wait_for_namesakes(&uid);
            }
        }
    }

    /// Forgets a static pod that has finished, and deletes its mirror pod.
    pub(super) fn forget_static_if_finished(
        &mut self,
        uid: &str,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Some(worker) = self.pods.workers.get(uid) else { return };
        if is_static(&worker.object) && worker.removed && worker.stage == Stage::Finished {
            mirror::delete(&worker.manifest, Some(uid), ctx);
        }
        self.forget_if_finished(uid, machine, ctx);
    }

    /// Makes a static pod wait for the end of pods with the same name, from earlier versions of the
    /// file.
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
            own.waits_for.extend(before);
        }
    }

    /// Returns the uid and the pod of a manifest (`applyDefaults`).
    fn static_pod(&self, file: &str, text: &[u8], ctx: &SimContext) -> Result<(String, Value), String> {
        let mut pod = parse_yaml(text)?;
        if (pod.text("kind"), pod.text("apiVersion")) != Kind::Pod.names() {
            return Err("couldn't parse as pod: not a v1 Pod".to_owned());
        }
        let mut metadata: ObjectMeta = pod.read("metadata");
        let present = |text: Option<String>| text.filter(|text| !text.is_empty());
        let name = present(metadata.name).ok_or("invalid pod: name is needed for the pod")?;
        let node = &self.options.name;
        let hash = || format!("{:032x}", fnv(format!("{pod}host:{node}file:{file}").as_bytes()));
        let uid = present(metadata.uid).unwrap_or_else(hash);
        metadata.uid = Some(uid.clone());
        metadata.name = Some(format!("{name}-{}", node.to_lowercase()));
        metadata.namespace = present(metadata.namespace).or_else(|| Some("default".to_owned()));
        let seen = ctx.epoch().at(ctx.now).strftime("%Y-%m-%dT%H:%M:%S%.9fZ").to_string();
        let annotations = [
            (CONFIG_HASH_ANNOTATION, uid.clone()),
            (CONFIG_SEEN_ANNOTATION, seen),
            (CONFIG_SOURCE_ANNOTATION, "file".to_owned()),
        ];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value));
        metadata.annotations.get_or_insert_default().extend(annotations);
        pod.write("metadata", metadata);
        let spec = pod.spec_mut();
        spec.write("nodeName", node);
        spec.change("tolerations", |tolerations: &mut Vec<Toleration>| {
            let all = Toleration {
                operator: Some("Exists".to_owned()),
                effect: Some("NoExecute".to_owned()),
                ..Toleration::default()
            };
            if !tolerations.contains(&all) {
                tolerations.push(all);
            }
        });
        apiserver::default_and_validate_pod(&mut pod, &self.options.version)
            .map_err(|status| status.message)?;
        pod.write("status", PodStatus { phase: Some(Phase::Pending), ..PodStatus::default() });
        Ok((uid, pod))
    }
}

/// FNV-1a hash with 128 bits, as Go's `fnv.New128a`. The hashed bytes differ from the kubelet's.
fn fnv(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
