//! What may be asked with a request.

use std::sync::Arc;

use serde_json::Value;

/// `fieldValidation`: what becomes of unknown and doubled fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// They are dropped in silence.
    Ignore,
    /// They are dropped with a warning: the default of a real server.
    #[default]
    Warn,
    /// They are refused.
    Strict,
}

/// How to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Create {
    /// What becomes of unknown fields.
    pub strict: Strictness,
    /// Everything but storing is done.
    pub dry_run: bool,
}

/// How to update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// What becomes of unknown fields.
    pub strict: Strictness,
    /// Everything but storing is done.
    pub dry_run: bool,
}

/// `metav1.DeleteOptions`, as far as they matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds` instead of the pod's own.
    pub grace: Option<u64>,
    /// What must hold.
    pub preconditions: Preconditions,
    /// What becomes of dependents, if it is not what the kind's default is.
    pub propagation: Option<Propagation>,
    /// Everything but deleting is done.
    pub dry_run: bool,
}

/// `propagationPolicy`: what becomes of the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay, and are nobody's.
    Orphan,
    /// They are deleted when it is gone.
    Background,
    /// It is gone when they are deleted.
    Foreground,
}

impl Propagation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Foreground, Self::Background, Self::Orphan];

    /// As the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }

    /// What keeps the object until the garbage collector has done its part.
    pub(crate) fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Orphan => Some("orphan"),
            Self::Background => None,
            Self::Foreground => Some("foregroundDeletion"),
        }
    }
}

/// What must hold for a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The object's uid.
    pub uid: Option<String>,
    /// The object's version.
    pub resource_version: Option<String>,
}

/// What a deletion led to.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    /// The object, which is there still (a grace period, a finalizer), or of a pod its last state.
    Object(Arc<Value>),
    /// A `Status` of success: the object is gone.
    Status(Value),
}

/// An object as it was stored, and warnings for the one who asked.
pub type Stored = (Arc<Value>, Vec<String>);
