//! The images on a node.

use std::collections::BTreeSet;

use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

use crate::machine::{DiskUse, Filesystem};

/// An image.
#[derive(Clone, Debug)]
struct Image {
    name: String,
    bytes: u64,
}

/// The images on a node. They are part of what the node uses of its disk before any pod.
#[derive(Clone, Debug, Default)]
pub struct Images {
    all: Vec<Image>,
    freed: u64,
}

/// Files of an image for each of its bytes, as counted in kind's nodes.
const BYTES_A_FILE: u64 = 33_000;

impl Images {
    /// What is in kind's node image, and what evictlab loads beside it.
    pub fn of_kind(version: &KubeletVersion) -> Self {
        let pause = match version.minor {
            ..31 => "3.9",
            31..34 => "3.10",
            34..36 => "3.10.1",
            _ => "3.10.2",
        };
        let all = [
            ("registry.k8s.io/e2e-test-images/agnhost:2.52".to_owned(), 139_374_622),
            ("docker.io/kindest/kindnetd:v20250512-df8de77b".to_owned(), 109_379_124),
            (format!("registry.k8s.io/kube-proxy:{version}"), 99_144_265),
            ("registry.k8s.io/coredns/coredns:v1.12.0".to_owned(), 70_095_302),
            ("docker.io/kindest/local-path-provisioner:v20250214-acbabc1a".to_owned(), 51_434_337),
            ("docker.io/kindest/local-path-helper:v20241212-8ac705d0".to_owned(), 3_076_152),
            (format!("registry.k8s.io/pause:{pause}"), 320_368),
        ];
        Self { all: all.into_iter().map(|(name, bytes)| Image { name, bytes }).collect(), freed: 0 }
    }

    /// What they take.
    pub fn used(&self) -> DiskUse {
        let bytes = self.all.iter().map(|image| image.bytes).sum();
        DiskUse { bytes, inodes: bytes / BYTES_A_FILE }
    }

    /// A file system without what was freed of it.
    pub fn without_freed(&self, whole: Filesystem) -> Filesystem {
        let used = DiskUse {
            bytes: whole.used.bytes.saturating_sub(self.freed),
            inodes: whole.used.inodes.saturating_sub(self.freed / BYTES_A_FILE),
        };
        Filesystem { used, ..whole }
    }

    /// Deletes those that no container uses; the sandboxes' own is always in use.
    pub fn delete_unused(&mut self, used: &BTreeSet<String>) {
        let stays = |image: &Image| image.name.contains("/pause:") || used.contains(&image.name);
        self.freed += self.all.iter().filter(|image| !stays(image)).map(|image| image.bytes).sum::<u64>();
        self.all.retain(stays);
    }

    /// As the node's status lists them.
    pub fn listed(&self) -> Value {
        self.all.iter().map(|image| json!({"names": [image.name], "sizeBytes": image.bytes})).collect()
    }
}
