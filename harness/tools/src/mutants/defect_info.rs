//! An entry in the list of defects.

use evictlab_embedded::Defect;
use schemars::JsonSchema;
use serde::Serialize;

/// A defect, as `evictlab mutants list --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DefectInfo {
    /// Name of the defect.
    defect: String,
    /// Part of the kubelet that the defect is in.
    area: String,
    /// Description of the defect in one sentence.
    about: String,
}

impl From<&Defect> for DefectInfo {
    fn from(defect: &Defect) -> Self {
        Self { defect: defect.to_string(), area: defect.area().to_string(), about: defect.about().to_owned() }
    }
}
