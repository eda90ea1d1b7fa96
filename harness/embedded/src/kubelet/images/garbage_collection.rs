//! Periodic deletion of unused images: `GarbageCollect` of
//! `pkg/kubelet/images/image_gc_manager.go`. `imageMaximumGCAge` is not modelled.

use std::collections::BTreeSet;
use std::time::Duration;

use evictlab_rules::quantity::KIB;

use super::lookup;
use super::store::{DeletedImage, ImageDeletion};
use crate::context::SimContext;
use crate::defect::{Defect, Defects};
use crate::kubelet::event::StatusEvent;
use crate::kubelet::log::Level;
use crate::kubelet::pods::Pods;
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Filesystem, Machine};
use crate::resource::EventBody;

/// `ImageGCPeriod`
const PERIOD: Duration = Duration::from_secs(300);
/// Period of detections (`realImageGCManager.Start`).
const DETECTION_PERIOD: Duration = Duration::from_secs(300);

impl Kubelet {
    /// Schedules the deletions of a kubelet that starts. The one at the start has no statistics
    /// yet, only reports that, and has failed. A high threshold of 100 % disables them.
    pub(in crate::kubelet) fn start_image_gc(&mut self, ctx: &mut SimContext) {
        self.status.image_gc_due = None;
        if self.config.settings.image_gc_high >= 100 || self.has(Defect::ImageGcMissing) {
            return;
        }
        let message = "invalid capacity 0 on image filesystem";
        self.record_event(EventObject::Node, EventBody::warning("InvalidDiskCapacity", message), ctx);
        self.status.image_gc_failed = true;
        self.schedule_image_gc(ctx);
    }

    /// Detects the images of the node when the kubelet starts, and schedules the next detection
    /// (`realImageGCManager.Start`).
    pub(in crate::kubelet) fn start_image_detection(&mut self, ctx: &mut SimContext) {
        let used = used_images(&self.pods, &self.options.defects);
        self.status.images.start_detection(&self.options.version, &used, ctx.now);
        self.schedule_detection(ctx);
    }

    /// Detects the images of the node.
    pub(in crate::kubelet) fn detect_images(&mut self, ctx: &mut SimContext) {
        let used = used_images(&self.pods, &self.options.defects);
        self.status.images.detect(&used, ctx.now);
        self.schedule_detection(ctx);
    }

    fn schedule_detection(&mut self, ctx: &mut SimContext) {
        let next = ctx.now + DETECTION_PERIOD;
        self.status.detection_due = Some(next);
        self.status_at(next, StatusEvent::DetectImages, ctx);
    }

    fn schedule_image_gc(&mut self, ctx: &mut SimContext) {
        let next = ctx.now + PERIOD;
        self.status.image_gc_due = Some(next);
        self.status_at(next, StatusEvent::CollectImages, ctx);
    }

    /// Deletes unused images periodically. A failure is an event of its own from the second one in
    /// a row on (`StartGarbageCollection` of `pkg/kubelet/kubelet.go`).
    pub(in crate::kubelet) fn collect_images(&mut self, machine: &Machine, ctx: &mut SimContext) {
        self.schedule_image_gc(ctx);
        let failure = self.delete_unused_images(machine, ctx);
        let has_failed = std::mem::replace(&mut self.status.image_gc_failed, failure.is_some());
        if let Some(message) = failure.filter(|_| has_failed) {
            self.record_event(EventObject::Node, EventBody::warning("ImageGCFailed", &message), ctx);
        }
    }

    /// Deletes unused images if the file system of images is used up to the high threshold, until
    /// it is used up to the low one. Returns the error if too little could be deleted.
    fn delete_unused_images(&mut self, machine: &Machine, ctx: &mut SimContext) -> Option<String> {
        let Filesystem { capacity, used } = match machine.images_filesystem() {
            Some(layers) => self.status.images.include(layers),
            None => self.status.images.adjust(machine.filesystem()),
        };
        let (capacity, available) = (capacity.bytes, capacity.bytes.saturating_sub(used.bytes));
        let settings = &self.config.settings;
        let used_percent = 100 - available * 100 / capacity.max(1);
        if used_percent < settings.image_gc_high {
            return None;
        }
        let end = if self.has(Defect::ImageGcStopsAtHighThreshold) {
            settings.image_gc_high
        } else {
            settings.image_gc_low
        };
        let wanted = (capacity * (100 - end) / 100).saturating_sub(available);
        let pairs = format!(
            "usage={used_percent} highThreshold={} amountToFree={wanted} lowThreshold={}",
            settings.image_gc_high, settings.image_gc_low
        );
        let deletion = ImageDeletion {
            used: used_images(&self.pods, &self.options.defects),
            min_age: settings.image_min_age,
            with_pinned: false,
            is_reversed: self.has(Defect::ImagesUsedLastAreDeletedFirst),
            bytes: wanted,
        };
        let deleted = self.status.images.delete_unused(&deletion, ctx.now);
        let message = "Disk usage on image filesystem is over the high threshold, trying to free bytes down to the \
                       low threshold";
        self.write_log(Level::Info, "image_gc_manager.go:395", message, &pairs, ctx);
        self.log_deletions(&deleted, ctx);
        let freed = deleted.iter().map(|image| image.bytes).sum();
        if freed >= wanted {
            return None;
        }
        let message = if self.options.version.at_least(35) {
            insufficient_space(used_percent, capacity, freed)
        } else {
            format!(
                "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only \
                 found {freed} bytes eligible to free."
            )
        };
        if !self.has(Defect::ImageGcFailureWithoutEvent) {
            self.record_event(EventObject::Node, EventBody::warning("FreeDiskSpaceFailed", &message), ctx);
        }
        Some(message)
    }

    /// Logs deleted images in their order (`freeImage`).
    pub(in crate::kubelet) fn log_deletions(&mut self, deleted: &[DeletedImage], ctx: &SimContext) {
        for DeletedImage { name, bytes } in deleted {
            let pairs = format!("imageID={:?} size={bytes} runtimeHandler=\"\"", lookup::id(name));
            self.write_log(
                Level::Info,
                "image_gc_manager.go:514",
                "Removing image to free bytes",
                &pairs,
                ctx,
            );
        }
    }
}

/// Returns the images that containers use; with a defect, only those of running containers.
fn used_images<'a>(pods: &'a Pods, defects: &Defects) -> BTreeSet<&'a str> {
    if defects.has(Defect::ImageGcIgnoresEndedContainers) {
        pods.images_of_running()
    } else {
        pods.images_in_use()
    }
}

/// Returns the message of a deletion that freed too little, since 1.35.
fn insufficient_space(used_percent: u64, capacity: u64, freed: u64) -> String {
    let capacity = format_size(capacity);
    format!(
        "Insufficient free disk space on the node's image filesystem ({used_percent}% of {capacity} used). Failed to free \
         sufficient space by deleting unused images (freed {freed} bytes). Investigate disk usage, as it could be used \
         by active images, logs, volumes, or other data."
    )
}

/// Formats a size as `formatSize` does: `2.0 GiB`.
fn format_size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < KIB as f64 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= KIB as f64;
    }
    format!("{amount:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_rules::quantity::GIB;

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        for (bytes, text) in
            [(1023, "1023 B"), (1536, "1.5 KiB"), (2 * GIB, "2.0 GiB"), (2048 * GIB, "2.0 TiB")]
        {
            assert_eq!(format_size(bytes), text);
        }
    }
}
