//! Options and results of operations on objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use serde_json::Value;

use super::status::{Status, StatusReason};
use crate::resource::Kind;

/// Kind, namespace and name of an object. The namespace is empty for cluster-scoped kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath<'a> {
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// `metadata.name`.
    pub name: &'a str,
}

/// `fieldValidation`: treatment of unknown fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Drops unknown fields silently.
    Ignore,
    /// Drops unknown fields with a warning: the default of the API server.
    #[default]
    Warn,
    /// Rejects objects with unknown fields.
    Strict,
}

/// `metav1.DeleteOptions`, as far as the embedded cluster supports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    /// `gracePeriodSeconds`; `None` for the pod's own.
    pub grace: Option<u64>,
    /// Preconditions; a violation is a conflict.
    pub preconditions: Preconditions,
    /// Deletes the dependents before the object (`Foreground`), and not after it (`Background`).
    pub foreground: bool,
}

impl DeleteOptions {
    /// Converts the options of a request.
    ///
    /// # Errors
    /// 422 for a negative grace period and for an unknown propagation policy, 501 for `Orphan` and
    /// for `dryRun`.
    pub(crate) fn from_api(options: v1::DeleteOptions) -> Result<Self, Status> {
        if options.dry_run.is_some_and(|stages| !stages.is_empty()) {
            return Err(Status::dry_run());
        }
        let foreground = match options.propagation_policy.as_deref() {
            None | Some("" | "Background") => false,
            Some("Foreground") => true,
            Some("Orphan") => return Err(Status::orphaned_dependents()),
            Some(other) => {
                return Err(invalid_delete_options(&format!(
                    "propagationPolicy: Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                )));
            }
        };
        let preconditions = options.preconditions.unwrap_or_default();
        Ok(Self {
            grace: options.grace_period_seconds.map(parse_grace).transpose()?,
            preconditions: Preconditions {
                uid: preconditions.uid,
                resource_version: preconditions.resource_version,
            },
            foreground,
        })
    }
}

fn parse_grace(seconds: i64) -> Result<u64, Status> {
    u64::try_from(seconds).map_err(|_| {
        let message = format!("gracePeriodSeconds: Invalid value: {seconds}: must be non-negative");
        invalid_delete_options(&message)
    })
}

fn invalid_delete_options(message: &str) -> Status {
    Status::new(StatusReason::Invalid, format!("DeleteOptions.meta.k8s.io \"\" is invalid: {message}"))
}

/// Preconditions of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// Expected uid.
    pub uid: Option<String>,
    /// Expected resource version.
    pub resource_version: Option<String>,
}

/// Result of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeleteResult {
    /// The object, which still exists (grace period, finalizer), or the last state of a pod.
    Object(Arc<Value>),
    /// A `Status` of success: the object is deleted.
    Status(Value),
}

/// A stored object, and warnings for the client.
#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    /// The object.
    pub object: Arc<Value>,
    /// Warnings.
    pub warnings: Vec<String>,
}
