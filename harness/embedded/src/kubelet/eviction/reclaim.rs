//! What is freed before a pod is evicted.

use std::collections::BTreeSet;

use evictlab_rules::threshold::Reclaim;

use super::Kubelet;
use crate::machine::Machine;
use crate::world::Ctx;

impl Kubelet {
    /// Deletes dead containers, unused images.
    pub(super) fn eviction_free(&mut self, ways: &[Reclaim], machine: &mut Machine, ctx: &mut Ctx) {
        for way in ways {
            match way {
                Reclaim::Containers => self.collect_containers(machine, ctx),
                Reclaim::Images => {
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
                let containers = active.object["spec"][list].as_array().into_iter().flatten();
                used.extend(containers.filter_map(|one| one["image"].as_str()).map(str::to_owned));
            }
        }
        used
    }
}
