//! The annotations of an Evicted event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Offender;
use crate::quantity::{Quantity, QuantityError};
use crate::threshold::Resource;

/// Key of the names of the containers over their requests, separated by commas
/// (`OffendingContainersKey`, pkg/kubelet/eviction/helpers.go).
pub const OFFENDING_CONTAINERS_KEY: &str = "offending_containers";
/// Key of the usages of these containers, in the same order.
pub const OFFENDING_CONTAINERS_USAGE_KEY: &str = "offending_containers_usage";
/// Key of the resource that the node was low on.
pub const STARVED_RESOURCE_KEY: &str = "starved_resource";
/// Key of the name of a pod with a pod-level request.
pub const OFFENDING_POD_KEY: &str = "offending_pod";
/// Key of the usage of this pod.
pub const OFFENDING_POD_USAGE_KEY: &str = "offending_pod_usage";

/// All keys.
const KEYS: [&str; 5] = [
    STARVED_RESOURCE_KEY,
    OFFENDING_CONTAINERS_KEY,
    OFFENDING_CONTAINERS_USAGE_KEY,
    OFFENDING_POD_KEY,
    OFFENDING_POD_USAGE_KEY,
];

/// Annotations of the event of a node-pressure eviction. Without offenders, the kubelet writes the
/// container lists as empty texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// Resource that the node was low on.
    pub starved_resource: Resource,
    /// Name and usage of the containers over their requests, in the order of the message.
    pub containers: Vec<(String, Quantity)>,
    /// Name and usage of a pod with a pod-level request (1.34 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<(String, Quantity)>,
}

/// The annotations are not those of an eviction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// An annotation is missing although another one exists.
    #[error("missing annotation {missing}, although {present} exists")]
    Missing {
        /// Key of the missing annotation.
        missing: &'static str,
        /// Key of an existing annotation.
        present: &'static str,
    },
    /// The resource does not exist.
    #[error("invalid annotation starved_resource {0:?}: expected memory, ephemeral-storage, inodes or pids")]
    UnknownResource(String),
    /// The lists of names and usages differ in length.
    #[error(
        "length mismatch: annotation offending_containers has {name_count} entries ({names:?}), \
         offending_containers_usage has {usage_count} ({usages:?})"
    )]
    LengthMismatch {
        /// Number of names.
        name_count: usize,
        /// Number of usages.
        usage_count: usize,
        /// Value of `offending_containers`.
        names: String,
        /// Value of `offending_containers_usage`.
        usages: String,
    },
    /// A usage is not a quantity.
    #[error("invalid annotation {key}: {source}")]
    Usage {
        /// Key of the annotation.
        key: &'static str,
        /// Parse error, which contains the usage.
        source: QuantityError,
    },
}

impl Annotations {
    /// Returns the annotations that belong to a message with these offenders.
    pub fn new(resource: Resource, pod: Option<&Offender>, containers: &[Offender]) -> Self {
        let entry = |offender: &Offender| (offender.name.clone(), offender.usage.clone());
        Self {
            starved_resource: resource,
            containers: containers.iter().map(entry).collect(),
            pod: pod.map(entry),
        }
    }

    /// Returns whether a key is that of an annotation of an eviction.
    pub fn is_key(key: &str) -> bool {
        KEYS.contains(&key)
    }

    /// Returns the annotations by key, as on the event.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let names: Vec<_> = self.containers.iter().map(|(name, _)| name.as_str()).collect();
        let usages: Vec<_> = self.containers.iter().map(|(_, usage)| usage.to_string()).collect();
        let mut all = BTreeMap::from([
            (OFFENDING_CONTAINERS_KEY.to_owned(), names.join(",")),
            (OFFENDING_CONTAINERS_USAGE_KEY.to_owned(), usages.join(",")),
            (STARVED_RESOURCE_KEY.to_owned(), self.starved_resource.to_string()),
        ]);
        if let Some((name, usage)) = &self.pod {
            all.insert(OFFENDING_POD_KEY.to_owned(), name.clone());
            all.insert(OFFENDING_POD_USAGE_KEY.to_owned(), usage.to_string());
        }
        all
    }

    /// Parses the annotations of an event and ignores foreign keys. Returns `None` if the event
    /// does not have any annotation of an eviction.
    ///
    /// # Errors
    /// Returns an error if the annotations are incomplete, or if a value does not parse.
    pub fn from_map(all: &BTreeMap<String, String>) -> Result<Option<Self>, AnnotationError> {
        let present = KEYS.into_iter().find(|key| all.contains_key(*key));
        let Some(present) = present else { return Ok(None) };
        let get =
            |missing: &'static str| all.get(missing).ok_or(AnnotationError::Missing { missing, present });
        let (starved, names, usages) = (
            get(STARVED_RESOURCE_KEY)?,
            get(OFFENDING_CONTAINERS_KEY)?,
            get(OFFENDING_CONTAINERS_USAGE_KEY)?,
        );
        let starved_resource =
            Resource::from_name(starved).ok_or_else(|| AnnotationError::UnknownResource(starved.clone()))?;
        let containers = parse_containers(names, usages)?;
        let pod = match (all.get(OFFENDING_POD_KEY), all.get(OFFENDING_POD_USAGE_KEY)) {
            (None, None) => None,
            (Some(_), None) => {
                return Err(AnnotationError::Missing {
                    missing: OFFENDING_POD_USAGE_KEY,
                    present: OFFENDING_POD_KEY,
                });
            }
            (None, Some(_)) => {
                return Err(AnnotationError::Missing {
                    missing: OFFENDING_POD_KEY,
                    present: OFFENDING_POD_USAGE_KEY,
                });
            }
            (Some(name), Some(usage)) => Some((name.clone(), parse_usage(OFFENDING_POD_USAGE_KEY, usage)?)),
        };
        Ok(Some(Self { starved_resource, containers, pod }))
    }
}

/// Pairs the entries of `offending_containers` with those of `offending_containers_usage`.
fn parse_containers(names: &str, usages: &str) -> Result<Vec<(String, Quantity)>, AnnotationError> {
    let (name_list, usage_list) = (split_list(names), split_list(usages));
    if name_list.len() != usage_list.len() {
        return Err(AnnotationError::LengthMismatch {
            name_count: name_list.len(),
            usage_count: usage_list.len(),
            names: names.to_owned(),
            usages: usages.to_owned(),
        });
    }
    let pair = |(name, usage): (&str, &str)| {
        Ok((name.to_owned(), parse_usage(OFFENDING_CONTAINERS_USAGE_KEY, usage)?))
    };
    name_list.into_iter().zip(usage_list).map(pair).collect()
}

/// Splits at commas. An empty text is an empty list.
fn split_list(list: &str) -> Vec<&str> {
    if list.is_empty() { vec![] } else { list.split(',').collect() }
}

fn parse_usage(key: &'static str, usage: &str) -> Result<Quantity, AnnotationError> {
    Quantity::parse_verbatim(usage).map_err(|source| AnnotationError::Usage { key, source })
}
