//! Images on a node.

use std::collections::BTreeSet;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::MIB;
use k8s_openapi::api::core::v1::ContainerImage;

use crate::machine::{DiskUse, Filesystem};

/// Image on a node.
#[derive(Clone, Debug)]
struct Image {
    name: String,
    bytes: u64,
    /// True if the node had the image from the start: the node's disk usage without pods includes
    /// the image.
    is_included: bool,
}

/// Images on a node.
#[derive(Clone, Debug, Default)]
pub struct Images {
    all: Vec<Image>,
    deleted: Vec<Image>,
}

/// Bytes per file in images, as counted on kind's nodes.
const BYTES_A_FILE: u64 = 33_000;
/// Size of an image that is loaded into a node, in bytes.
const LOADED_IMAGE_BYTES: u64 = 64 * MIB;

impl Images {
    /// Returns the images of kind's node image and those that evictlab loads.
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
        let all = all.into_iter().map(|(name, bytes)| Image { name, bytes, is_included: true }).collect();
        Self { all, deleted: Vec::new() }
    }

    /// Returns the disk usage of the images.
    pub fn used(&self) -> DiskUse {
        disk_use(self.all.iter())
    }

    /// Returns a file system without the space that deleted images have freed, and with that of
    /// loaded images.
    pub fn adjust(&self, whole: Filesystem) -> Filesystem {
        let freed = disk_use(self.deleted.iter().filter(|image| image.is_included));
        let loaded = disk_use(self.all.iter().filter(|image| !image.is_included));
        let used = DiskUse {
            bytes: (whole.used.bytes + loaded.bytes).saturating_sub(freed.bytes),
            inodes: (whole.used.inodes + loaded.inodes).saturating_sub(freed.inodes),
        };
        Filesystem { used, ..whole }
    }

    /// Loads an image, unless the node has it.
    pub fn load(&mut self, name: &str) {
        self.restore(name);
        if !self.all.iter().any(|image| image.name == name) {
            let image = Image { name: name.to_owned(), bytes: LOADED_IMAGE_BYTES, is_included: false };
            self.all.push(image);
        }
    }

    /// Deletes images that no container uses, except for the sandbox image.
    pub fn delete_unused(&mut self, used: &BTreeSet<String>) {
        let goes = |image: &mut Image| !image.name.contains("/pause:") && !used.contains(&image.name);
        self.deleted.extend(self.all.extract_if(.., goes));
    }

    /// Brings a deleted image back, which a container needs again.
    pub fn restore(&mut self, name: &str) {
        self.all.extend(self.deleted.extract_if(.., |image| image.name == name));
    }

    /// Returns the images as `status.images` of the node.
    pub fn listed(&self) -> Vec<ContainerImage> {
        let listed = |image: &Image| ContainerImage {
            names: Some(vec![image.name.clone()]),
            size_bytes: i64::try_from(image.bytes).ok(),
        };
        self.all.iter().map(listed).collect()
    }
}

fn disk_use<'a>(images: impl Iterator<Item = &'a Image>) -> DiskUse {
    let bytes = images.map(|image| image.bytes).sum();
    DiskUse { bytes, inodes: bytes / BYTES_A_FILE }
}
