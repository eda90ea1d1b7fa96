//! The annotations of an Evicted event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Offender;
use crate::quantity::Quantity;
use crate::threshold::Resource;

const CONTAINERS: &str = "offending_containers";
const CONTAINERS_USAGE: &str = "offending_containers_usage";
const STARVED: &str = "starved_resource";
const POD: &str = "offending_pod";
const POD_USAGE: &str = "offending_pod_usage";

/// What a node-pressure eviction's event is annotated with. Both lists are there, empty, when nobody offends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// What the node was low on.
    pub starved_resource: Resource,
    /// The containers over their requests with their usage, in the message's order.
    pub containers: Vec<(String, Quantity)>,
    /// The pod over its pod-level request with its usage (1.34 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<(String, Quantity)>,
}

/// The annotations are not those of an eviction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// One is missing that goes with the others.
    #[error("the annotation {missing} is missing, though {present} is there")]
    Missing {
        /// Which.
        missing: &'static str,
        /// Which is there.
        present: &'static str,
    },
    /// The resource is none.
    #[error(
        "the annotation starved_resource is {0:?}, which is none of memory, ephemeral-storage, inodes and pids"
    )]
    Resource(String),
    /// The lists do not belong together.
    #[error(
        "the annotation offending_containers has {names} entries ({containers:?}), offending_containers_usage has \
         {usages} ({usage:?})"
    )]
    Lengths {
        /// How many containers.
        names: usize,
        /// How many usages.
        usages: usize,
        /// The containers.
        containers: String,
        /// The usages.
        usage: String,
    },
    /// A usage is no quantity.
    #[error("the annotation {key} has {entry:?}: {why}")]
    Usage {
        /// Where.
        key: &'static str,
        /// Which entry.
        entry: String,
        /// What is wrong.
        why: crate::quantity::QuantityError,
    },
}

impl Annotations {
    /// The annotations that go with a message's offenders.
    pub fn of(resource: Resource, pod: Option<&Offender>, containers: &[Offender]) -> Self {
        let entry = |offender: &Offender| (offender.name.clone(), offender.usage.clone());
        Self {
            starved_resource: resource,
            containers: containers.iter().map(entry).collect(),
            pod: pod.map(entry),
        }
    }

    /// The annotations as the event has them.
    pub fn write(&self) -> BTreeMap<String, String> {
        let names: Vec<_> = self.containers.iter().map(|(name, _)| name.as_str()).collect();
        let usages: Vec<_> = self.containers.iter().map(|(_, usage)| usage.to_string()).collect();
        let mut all = BTreeMap::from([
            (CONTAINERS.to_owned(), names.join(",")),
            (CONTAINERS_USAGE.to_owned(), usages.join(",")),
            (STARVED.to_owned(), self.starved_resource.to_string()),
        ]);
        if let Some((name, usage)) = &self.pod {
            all.insert(POD.to_owned(), name.clone());
            all.insert(POD_USAGE.to_owned(), usage.to_string());
        }
        all
    }

    /// Reads an event's annotations; none if it has none of an eviction's. Others are ignored.
    ///
    /// # Errors
    /// See [`AnnotationError`].
    pub fn read(all: &BTreeMap<String, String>) -> Result<Option<Self>, AnnotationError> {
        let present = [STARVED, CONTAINERS, CONTAINERS_USAGE, POD, POD_USAGE]
            .into_iter()
            .find(|k| all.contains_key(*k));
        let Some(present) = present else { return Ok(None) };
        let get =
            |missing: &'static str| all.get(missing).ok_or(AnnotationError::Missing { missing, present });
        let (starved, names, usage) = (get(STARVED)?, get(CONTAINERS)?, get(CONTAINERS_USAGE)?);
        let starved_resource =
            Resource::named(starved).ok_or_else(|| AnnotationError::Resource(starved.clone()))?;
        let containers = entries(names);
        let usages = entries(usage);
        if containers.len() != usages.len() {
            return Err(AnnotationError::Lengths {
                names: containers.len(),
                usages: usages.len(),
                containers: names.clone(),
                usage: usage.clone(),
            });
        }
        let usages = usages
            .into_iter()
            .map(|entry| quantity(CONTAINERS_USAGE, entry))
            .collect::<Result<Vec<_>, _>>()?;
        let pod = match (all.get(POD), all.get(POD_USAGE)) {
            (None, None) => None,
            (Some(_), None) => return Err(AnnotationError::Missing { missing: POD_USAGE, present: POD }),
            (None, Some(_)) => return Err(AnnotationError::Missing { missing: POD, present: POD_USAGE }),
            (Some(name), Some(usage)) => Some((name.clone(), quantity(POD_USAGE, usage)?)),
        };
        Ok(Some(Self {
            starved_resource,
            containers: containers.into_iter().map(str::to_owned).zip(usages).collect(),
            pod,
        }))
    }
}

fn entries(list: &str) -> Vec<&str> {
    if list.is_empty() { vec![] } else { list.split(',').collect() }
}

fn quantity(key: &'static str, entry: &str) -> Result<Quantity, AnnotationError> {
    Quantity::printed(entry).map_err(|why| AnnotationError::Usage { key, entry: entry.to_owned(), why })
}
