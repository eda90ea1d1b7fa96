//! Node-level reclaim.

use std::collections::BTreeSet;

use evictlab_rules::threshold::ReclaimAction;

use crate::defect::Defect;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;
use crate::resource::ObjectExt;

impl Kubelet {
    /// Deletes dead containers and unused images.
    pub(super) fn eviction_reclaim_node_level(&mut self, actions: &[ReclaimAction], machine: &mut Machine) {
        for action in actions {
            match action {
                ReclaimAction::DeleteContainers if self.has(Defect::ReclaimKeepsContainers) => {}
                ReclaimAction::DeleteImages if self.has(Defect::ReclaimKeepsImages) => {}
                ReclaimAction::DeleteContainers => self.collect_containers(machine),
                ReclaimAction::DeleteImages => {
                    let used = self.images_in_use();
                    self.status.images.delete_unused(&used);
                }
            }
        }
    }

    fn images_in_use(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for active in self.pods.active() {
            for list in ["containers", "initContainers", "ephemeralContainers"] {
                let containers = active.object.spec().items(list);
                used.extend(containers.map(|one| one.text("image").to_owned()));
            }
        }
        used
    }
}
