//! Node-level reclaim.

use std::time::Duration;

use evictlab_rules::threshold::ReclaimAction;

use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::images::ImageDeletion;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;

impl Kubelet {
    /// Deletes dead containers and unused images.
    pub(in crate::kubelet) fn eviction_reclaim_node_level(
        &mut self,
        actions: &[ReclaimAction],
        machine: &mut Machine,
        ctx: &SimContext,
    ) {
        let mut actions = actions.to_vec();
        if self.has(Defect::ReclaimImagesFirst) {
            actions.reverse();
        }
        for action in actions {
            match action {
                ReclaimAction::DeleteContainers if self.has(Defect::ReclaimKeepsContainers) => {}
                ReclaimAction::DeleteImages if self.has(Defect::ReclaimKeepsImages) => {}
                ReclaimAction::DeleteContainers => self.collect_containers(machine),
                ReclaimAction::DeleteImages => {
                    let min_age = if self.has(Defect::ReclaimIgnoresAge) {
                        Duration::ZERO
                    } else {
                        self.config.settings.image_min_age
                    };
                    let deletion = ImageDeletion {
                        used: self.pods.images_in_use(),
                        min_age,
                        with_pinned: self.has(Defect::ReclaimDeletesPinned),
                        is_reversed: self.has(Defect::ImagesUsedLastAreDeletedFirst),
                        bytes: u64::MAX,
                    };
                    let deleted = self.status.images.delete_unused(&deletion, ctx.now);
                    self.log_deletions(&deleted, ctx);
                }
            }
        }
    }
}
