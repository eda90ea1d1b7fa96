//! Images on a node, and their garbage collection: `pkg/kubelet/images/image_gc_manager.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::MIB;
use k8s_openapi::api::core::v1::ContainerImage;

use crate::machine::{DiskUse, Filesystem};
use crate::sim::SimTime;

/// Image on a node.
#[derive(Clone, Debug)]
struct Image {
    name: String,
    bytes: u64,
    /// True if the node had the image from the start: the node's disk usage without pods includes
    /// the image.
    is_included: bool,
    /// True if the image is never deleted: the sandbox image, which containerd pins; an image of a
    /// case, which evictlab pins; and that of kindnetd, which runs on every kind node, but not in
    /// the model.
    is_kept: bool,
}

/// Times of a detected image; `None` is a time before the kubelet started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ImageRecord {
    /// Time of the last detection at which a container used the image.
    last_used: Option<SimTime>,
    first_detected: Option<SimTime>,
}

/// A deletion of unused images.
#[derive(Clone, Debug)]
pub(crate) struct ImageDeletion<'a> {
    /// Images that containers use.
    pub used: BTreeSet<&'a str>,
    /// Minimum time since the first detection of a deleted image.
    pub min_age: Duration,
    /// True if pinned images are deleted, too: a defect.
    pub with_pinned: bool,
    /// True if the image that was used last is deleted first: a defect.
    pub is_reversed: bool,
    /// Number of bytes after which the deletion ends.
    pub bytes: u64,
}

/// An image that was deleted.
#[derive(Clone, Debug)]
pub(crate) struct DeletedImage {
    pub name: String,
    pub bytes: u64,
}

/// Images on a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    all: Vec<Image>,
    deleted: Vec<Image>,
    /// Images that the running kubelet has detected (`imageRecords`).
    detected: BTreeMap<String, ImageRecord>,
    /// Images on nodefs, and deleted ones, while a file system of their own hides them.
    hidden: Option<(Vec<Image>, Vec<Image>)>,
}

/// Bytes per file in images, as counted on kind's nodes.
const BYTES_A_FILE: u64 = 33_000;
/// Size of an image that is loaded into a node, in bytes.
const LOADED_IMAGE_BYTES: u64 = 64 * MIB;
/// Size of an image that is pulled, in bytes.
const PULLED_IMAGE_BYTES: u64 = 53_021_160;
impl Images {
    /// Returns the images of kind's node image and those that evictlab loads.
    pub(crate) fn of_kind_node(version: &KubeletVersion) -> Self {
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
        let is_kept =
            |name: &str| ["/pause:", "/agnhost:", "/kindnetd:"].iter().any(|kept| name.contains(kept));
        let image =
            |(name, bytes): (String, u64)| Image { is_kept: is_kept(&name), name, bytes, is_included: true };
        Self { all: all.into_iter().map(image).collect(), ..Self::default() }
    }

    /// Returns the disk usage of the images.
    pub(crate) fn used(&self) -> DiskUse {
        disk_use(self.all.iter())
    }

    /// Returns a file system without the space that deleted images have freed, and with that of
    /// loaded images.
    pub(crate) fn adjust(&self, whole: Filesystem) -> Filesystem {
        let freed = disk_use(self.deleted.iter().filter(|image| image.is_included));
        let loaded = disk_use(self.all.iter().filter(|image| !image.is_included));
        Filesystem { used: (whole.used + loaded).saturating_sub(freed), ..whole }
    }

    /// Returns nodefs without images, which have a file system of their own.
    pub(crate) fn exclude(&self, whole: Filesystem) -> Filesystem {
        let on_nodefs = disk_use(self.all.iter().chain(&self.deleted).filter(|image| image.is_included));
        Filesystem { used: whole.used.saturating_sub(on_nodefs), ..whole }
    }

    /// Returns the file system of images with them.
    pub(crate) fn include(&self, others: Filesystem) -> Filesystem {
        Filesystem { used: others.used + self.used(), ..others }
    }

    /// Saves the images, until [`restore`](Self::restore).
    pub(crate) fn save(&mut self) {
        self.hidden = Some((self.all.clone(), self.deleted.clone()));
    }

    /// Restores saved images.
    pub(crate) fn restore(&mut self) {
        if let Some((all, deleted)) = self.hidden.take() {
            (self.all, self.deleted) = (all, deleted);
        }
    }

    /// Returns whether the node has an image that is listed.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.all.iter().any(|image| image.name == name)
    }

    /// Returns whether an image was deleted.
    pub(crate) fn is_deleted(&self, name: &str) -> bool {
        self.deleted.iter().any(|image| image.name == name)
    }

    /// Loads an image, unless the node has it.
    pub(crate) fn load(&mut self, name: &str) {
        self.add(name, LOADED_IMAGE_BYTES);
    }

    /// Adds a pulled image, unless the node has it.
    pub(crate) fn add_pulled(&mut self, name: &str) {
        self.add(name, PULLED_IMAGE_BYTES);
    }

    /// Adds an image, unless the node has it.
    pub(crate) fn add(&mut self, name: &str, bytes: u64) {
        self.all.extend(self.deleted.extract_if(.., |image| image.name == name));
        if !self.contains(name) {
            self.all.push(Image { name: name.to_owned(), bytes, is_included: false, is_kept: false });
        }
    }

    /// Removes the images whose names have a prefix, which no container uses.
    pub(crate) fn remove_with_prefix(&mut self, prefix: &str) {
        self.all.retain(|image| !image.name.starts_with(prefix));
    }

    /// Performs the first detection of a kubelet that starts. Before 1.29, the images that it finds
    /// count as old.
    pub(in crate::kubelet) fn start_detection(
        &mut self,
        version: &KubeletVersion,
        used: &BTreeSet<&str>,
        now: SimTime,
    ) {
        let found = Some(now).filter(|_| version.at_least(29));
        let record = ImageRecord { first_detected: found, last_used: None };
        self.detected = self.all.iter().map(|image| (image.name.clone(), record)).collect();
        self.detect(used, now);
    }

    /// Records new images and those that containers use with the time, and forgets deleted ones
    /// (`detectImages`).
    pub(in crate::kubelet) fn detect(&mut self, used: &BTreeSet<&str>, now: SimTime) {
        let mut before = std::mem::take(&mut self.detected);
        let known = |image: &Image| {
            let new = ImageRecord { first_detected: Some(now), last_used: None };
            let mut record = before.remove(&image.name).unwrap_or(new);
            if used.contains(image.name.as_str()) {
                record.last_used = Some(now);
            }
            (image.name.clone(), record)
        };
        self.detected = self.all.iter().map(known).collect();
    }

    /// Deletes images that no container uses, the least recently used first, then the one that was
    /// detected first, until enough is free (`freeSpace`). An image that is detected now is too
    /// young. Returns the deleted images in their order.
    pub(crate) fn delete_unused(&mut self, deletion: &ImageDeletion<'_>, now: SimTime) -> Vec<DeletedImage> {
        self.detect(&deletion.used, now);
        let is_old = |record: &ImageRecord| {
            record.first_detected.is_none_or(|first| now.since(first) >= deletion.min_age)
        };
        let can_go = |image: &&Image| {
            (deletion.with_pinned || !image.is_kept)
                && !deletion.used.contains(image.name.as_str())
                && self.detected.get(&image.name).is_some_and(is_old)
        };
        let mut order: Vec<(ImageRecord, String, u64)> = self
            .all
            .iter()
            .filter(can_go)
            .map(|image| (self.detected[&image.name], image.name.clone(), image.bytes))
            .collect();
        order.sort();
        if deletion.is_reversed {
            order.reverse();
        }
        let (mut deleted, mut freed) = (vec![], 0);
        for (_, name, bytes) in order {
            self.deleted.extend(self.all.extract_if(.., |image| image.name == name));
            deleted.push(DeletedImage { name, bytes });
            freed += bytes;
            if freed >= deletion.bytes {
                break;
            }
        }
        deleted
    }

    /// Returns the images as `status.images` of the node.
    pub(crate) fn listed(&self) -> Vec<ContainerImage> {
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
