//! Fields of newer versions of Kubernetes than that of the types, from 1.34 to 1.36; those of 1.37
//! are assumed to be the same.

/// Fields newer than the types, by the end of their paths without list items. The types are those
/// of Kubernetes 1.33. Sources: 1.34 (`hostnameOverride` KEP-4762, `restartPolicyRules` KEP-5307,
/// `fileKeyRef` KEP-3721, `podCertificate` KEP-4317), 1.35 (`workloadRef` KEP-4671,
/// `declaredFeatures` KEP-5328, pod-level resources in the status KEP-5419) and 1.36
/// (`schedulingGroup`, `volumeStatus`, `message` of a resource's health, claims of node allocatable
/// resources).
const NEWER_FIELDS: [&str; 13] = [
    "spec.hostnameOverride",
    "restartPolicyRules",
    "valueFrom.fileKeyRef",
    "sources.podCertificate",
    "spec.workloadRef",
    "spec.schedulingGroup",
    "status.declaredFeatures",
    "status.extendedResourceClaimStatus",
    "status.nodeAllocatableResourceClaimStatuses",
    "status.allocatedResources",
    "status.resources",
    "resources.message",
    "volumeMounts.volumeStatus",
];

/// Returns whether a field, given by the names on its path, is newer than the types of this crate,
/// so that they do not have it.
///
/// ```
/// # use evictlab_api_types::is_newer_field;
/// assert!(is_newer_field(["template", "spec", "hostnameOverride"]));
/// assert!(!is_newer_field(["metadata", "hostnameOverride"]));
/// ```
pub fn is_newer_field<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
    let path = names.into_iter().collect::<Vec<_>>().join(".");
    NEWER_FIELDS
        .iter()
        .any(|newer| path.strip_suffix(newer).is_some_and(|start| start.is_empty() || start.ends_with('.')))
}
