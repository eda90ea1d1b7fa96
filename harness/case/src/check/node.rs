//! Checks of the changes of a node.

use std::ops::RangeInclusive;

use evictlab_rules::quantity::{GIB, Quantity};

use super::checker::Checker;
use crate::action::NodeChange;
use crate::domain::DOMAIN_PREFIX;
use crate::node_setup::FileSystems;
use crate::positions::PathSegment;
use crate::yaml_path;

/// Least memory of a node, in bytes.
const LEAST_NODE_MEMORY: i64 = 64 << 20;

/// Sizes of an unused image, in bytes.
const UNUSED_IMAGE_SIZE: RangeInclusive<i64> = 1 << 20..=2 << 30;

/// Memory in huge pages, in bytes.
const HUGE_PAGES_RANGE: RangeInclusive<i64> = HUGE_PAGE_SIZE..=GIB as i64;
const HUGE_PAGE_SIZE: i64 = 2 << 20;

/// Size of an imagefs in bytes: it has the images of a kind node and room for a case, and the
/// metadata of a larger one would take space of the host.
const IMAGEFS_SIZE: RangeInclusive<i64> = 2 * GIB as i64..=64 * GIB as i64;

/// Inodes of an imagefs: the files of the images of a kind node, and at most as many as 2Gi can
/// have.
const IMAGEFS_INODES: RangeInclusive<u64> = 32 << 10..=512 << 10;

impl Checker<'_> {
    /// Checks the sizes of the node, and that capacities and taints have the prefix
    /// [`DOMAIN_PREFIX`], by which they are found and removed.
    pub(crate) fn check_node(&mut self) {
        for name in self.case.node.capacity.keys() {
            self.check_domain(yaml_path!["node", "capacity", name.as_str()], name);
        }
        if let Some(memory) = &self.case.node.memory
            && memory.quantity().value() < LEAST_NODE_MEMORY
        {
            self.report(
                yaml_path!["node", "memory"],
                format!("a node cannot run with {memory} of memory"),
                format!("state at least {}", Quantity::from_bytes(LEAST_NODE_MEMORY)),
            );
        }
        if let Some(file_systems) = &self.case.node.file_systems {
            self.check_imagefs(file_systems);
        }
        if let Some(size) = self.case.node.huge_pages.as_ref().map(|size| size.quantity().value())
            && !(HUGE_PAGES_RANGE.contains(&size) && size % HUGE_PAGE_SIZE == 0)
        {
            let page = Quantity::from_bytes(HUGE_PAGE_SIZE);
            self.report(
                yaml_path!["node", "huge-pages"],
                format!(
                    "huge pages are not a multiple of {page} up to {}",
                    Quantity::from_bytes(*HUGE_PAGES_RANGE.end())
                ),
                format!("state {}, in multiples of {page}", format_range(&HUGE_PAGES_RANGE)),
            );
        }
        if let Some(size) = &self.case.node.unused_image
            && !UNUSED_IMAGE_SIZE.contains(&size.quantity().value())
        {
            self.report(
                yaml_path!["node", "unused-image"],
                format!("an unused image cannot have a size of {size}"),
                format!("state {}", format_range(&UNUSED_IMAGE_SIZE)),
            );
        }
        for (at, step) in self.case.steps.iter().enumerate() {
            match step.node_change() {
                Some(NodeChange::Taint(taint)) => {
                    self.check_domain(yaml_path!["do", at, "taint", "key"], &taint.key);
                }
                Some(NodeChange::Untaint(key)) => self.check_domain(yaml_path!["do", at, "untaint"], key),
                _ => {}
            }
        }
    }

    fn check_imagefs(&mut self, stated: &FileSystems) {
        if !IMAGEFS_SIZE.contains(&stated.imagefs.quantity().value()) {
            self.report(
                yaml_path!["node", "file-systems", "imagefs"],
                format!("an imagefs cannot have a size of {}", stated.imagefs),
                format!("state {}: the images of a kind node take about 1Gi", format_range(&IMAGEFS_SIZE)),
            );
        }
        if let Some(inodes) = stated.imagefs_inodes
            && !IMAGEFS_INODES.contains(&inodes)
        {
            self.report(
                yaml_path!["node", "file-systems", "imagefs-inodes"],
                format!("an imagefs cannot have {inodes} inodes"),
                format!(
                    "state {} to {}: the images of a kind node take up to 20,000",
                    IMAGEFS_INODES.start(),
                    IMAGEFS_INODES.end()
                ),
            );
        }
    }

    fn check_domain(&mut self, path: &[PathSegment], name: &str) {
        if !name.starts_with(DOMAIN_PREFIX) {
            let note = format!("it must begin with {DOMAIN_PREFIX}");
            self.report(
                path,
                format!("`{name}` is outside of the domain of evictlab and would not be removed"),
                note,
            );
        }
    }
}

/// Formats a range of sizes: `2Gi to 64Gi`.
fn format_range(range: &RangeInclusive<i64>) -> String {
    format!("{} to {}", Quantity::from_bytes(*range.start()), Quantity::from_bytes(*range.end()))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::errors_of_changes;

    #[test]
    fn errors_point_to_the_mistake() {
        insta::assert_snapshot!(errors_of_changes(&[
            (
                "an imagefs without room for images",
                "expect:\n",
                "node: {file-systems: {imagefs: 512Mi}}\nexpect:\n",
            ),
            (
                "an imagefs without inodes for images",
                "expect:\n",
                "node: {file-systems: {imagefs: 2Gi, imagefs-inodes: 1000}}\nexpect:\n",
            ),
            ("huge pages of another size", "expect:\n", "node: {huge-pages: 3Mi}\nexpect:\n"),
            ("an unused image that is too large", "expect:\n", "node: {unused-image: 3Gi}\nexpect:\n"),
            ("a node without memory", "expect:\n", "node: {memory: 5}\nexpect:\n"),
            ("a taint outside of the domain", "expect:\n", "do:\n  - {untaint: example.com/x}\nexpect:\n"),
        ]));
    }
}
