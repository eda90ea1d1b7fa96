//! The defects of one kubelet.

use std::collections::BTreeSet;

use super::area::Area;
use super::list::Defect;

/// Defects of one kubelet; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defects(BTreeSet<Defect>);

impl Defects {
    /// Returns whether the kubelet has a defect.
    pub fn has(&self, defect: Defect) -> bool {
        self.0.contains(&defect)
    }

    /// Returns the defects in the order of [`Defect::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Defect> {
        self.0.iter().copied()
    }

    /// Returns whether the kubelet has a defect in an area.
    pub fn are_in(&self, area: Area) -> bool {
        self.0.iter().any(|defect| defect.area() == area)
    }
}

impl FromIterator<Defect> for Defects {
    fn from_iter<I: IntoIterator<Item = Defect>>(defects: I) -> Self {
        Self(defects.into_iter().collect())
    }
}
