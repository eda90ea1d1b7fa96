//! The shapes of the variables of expressions, as far as they are known before a case runs.
//!
//! Lint interprets the syntax tree of an expression with shapes in the place of values: each
//! variable has a shape ([`Shape::of_variable`]), and each access, macro and operator has the shape
//! that follows from those of its operands. An access to a field that a shape cannot have is a
//! mistake. The analysis is conservative: [`Shape::Any`] is the shape of every value about which
//! nothing is known, and all of its fields are valid.

use std::collections::BTreeMap;

use evictlab_api_types::{ApiType, TypeSegment, ValueShape, is_newer_field};

use super::variable::Variable;
use crate::kubelet_fields::kubelet_fields;

/// Variable that each iteration of a macro reads. Expressions cannot contain the name.
pub(super) const ITERATION: &str = "@iteration";

/// Kinds of the objects of a case, by name.
pub(crate) type ObjectTypes<'a> = BTreeMap<&'a str, ApiType>;

/// The known fields of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Any shape: nothing is known about the value.
    Any,
    /// The item of an empty list. It combines with every shape ([`Shape::or`]).
    Never,
    /// An object with these fields only.
    Object(Vec<(&'static str, Shape)>),
    /// A map with any keys.
    Map(Box<Shape>),
    /// A map with a shape for each of these keys, and anything for others.
    Named(BTreeMap<String, Shape>),
    /// A list whose items have one shape.
    List(Box<Shape>),
    /// A part of a Kubernetes object.
    Api(ApiType, Vec<TypeSegment>),
}

use Shape::{Any, Object};

impl Shape {
    /// Returns the shape of a variable.
    pub(super) fn of_variable(variable: Variable, objects: &ObjectTypes<'_>) -> Self {
        match variable {
            Variable::Answers => map(object_of(&["code", "reason", "message", "stdout", "stderr"])),
            Variable::Configz => object_of(&kubelet_fields().collect::<Vec<_>>()),
            Variable::Created | Variable::Pods => map(api(ApiType::Pod)),
            Variable::Evictions => list(Object(vec![
                ("pod", Any),
                ("message", Any),
                ("annotations", Any),
                ("kind", Any),
                ("resource", Any),
                ("threshold", Any),
                ("available", Any),
                ("containers", map(object_of(&["usage", "request"]))),
                ("volume", Any),
                ("limit", Any),
                ("container", Any),
            ])),
            Variable::Events => list(api(ApiType::Event)),
            Variable::History => map(list(Object(vec![
                ("t", Any),
                ("phase", Any),
                ("reason", Any),
                ("deleting", Any),
                ("gone", Any),
                ("conditions", map(object_of(&["status", "reason", "message"]))),
                ("containers", map(object_of(&["state", "reason", "exitCode", "restarts", "ready"]))),
            ]))),
            Variable::Images => list(object_of(&["names", "sizeBytes"])),
            Variable::Metrics => map(list(object_of(&["labels", "value", "increase"]))),
            Variable::Node => api(ApiType::Node),
            Variable::NodeHistory => list(Object(vec![
                ("t", Any),
                ("conditions", map(object_of(&["status", "reason", "message"]))),
                ("taints", Any),
                ("unschedulable", Any),
            ])),
            Variable::Objects => {
                Self::Named(objects.iter().map(|(name, kind)| ((*name).to_owned(), api(*kind))).collect())
            }
            Variable::PodList => list(api(ApiType::Pod)),
            Variable::PodStats => map(pod_stats()),
            Variable::Samples => list(sample()),
            Variable::Stats => map(map(container_stats())),
            Variable::SummaryBefore => object_of(&["node", "pods"]),
            Variable::Cgroup
            | Variable::Counted
            | Variable::Kubelet
            | Variable::KubeletLog
            | Variable::Logs
            | Variable::Minor
            | Variable::T => Any,
        }
    }

    /// Returns the shape of a container status, or of a condition.
    pub(super) fn of_function(name: &str) -> Self {
        match name {
            "container" => api(ApiType::ContainerStatus),
            "condition" => object_of(&[
                "type",
                "status",
                "reason",
                "message",
                "lastTransitionTime",
                "lastProbeTime",
                "lastHeartbeatTime",
                "lastUpdateTime",
                "observedGeneration",
            ]),
            _ => Any,
        }
    }

    /// Returns the shape of a field.
    ///
    /// # Errors
    /// The fields, if the value is an object without such a field.
    pub(super) fn field(&self, name: &str) -> Result<Self, Vec<&'static str>> {
        match self {
            Object(fields) => match fields.iter().find(|(field, _)| *field == name) {
                Some((_, shape)) => Ok(shape.clone()),
                None => Err(fields.iter().map(|(field, _)| *field).collect()),
            },
            Self::Map(value) => Ok((**value).clone()),
            Self::Named(values) => Ok(values.get(name).cloned().unwrap_or(Any)),
            Self::Api(kind, path) => match kind.shape_at(path) {
                ValueShape::Object(fields) if fields.contains(&name) => {
                    Ok(Self::Api(*kind, extended_path(path, TypeSegment::Field(name.to_owned()))))
                }
                ValueShape::Object(fields) if !is_newer_field(names(path).chain([name])) => {
                    Err(fields.to_vec())
                }
                ValueShape::Map => Ok(Self::Api(*kind, extended_path(path, TypeSegment::Value))),
                _ => Ok(Any),
            },
            _ => Ok(Any),
        }
    }

    /// Returns the shape of the value at an index of a list or a key of a map.
    pub(super) fn indexed(&self) -> Self {
        match self {
            Self::Map(value) => (**value).clone(),
            Self::Api(kind, path) if kind.shape_at(path) == ValueShape::Map => {
                Self::Api(*kind, extended_path(path, TypeSegment::Value))
            }
            _ => self.iterated(),
        }
    }

    /// Returns the shape of the items that a macro iterates over: those of a list, or the keys of a
    /// map.
    pub(super) fn iterated(&self) -> Self {
        match self {
            Self::List(item) => (**item).clone(),
            Self::Api(kind, path) if kind.shape_at(path) == ValueShape::List => {
                Self::Api(*kind, extended_path(path, TypeSegment::Item))
            }
            _ => Any,
        }
    }

    /// Returns the shape of a value that has one of two shapes.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, shape) | (shape, Self::Never) => shape,
            (Self::List(one), Self::List(other)) => list(one.or(*other)),
            (one, other) if one == other => one,
            _ => Any,
        }
    }
}

fn names(path: &[TypeSegment]) -> impl Iterator<Item = &str> {
    path.iter().filter_map(|segment| match segment {
        TypeSegment::Field(name) => Some(name.as_str()),
        TypeSegment::Item | TypeSegment::Value => None,
    })
}

fn extended_path(path: &[TypeSegment], segment: TypeSegment) -> Vec<TypeSegment> {
    path.iter().cloned().chain([segment]).collect()
}

fn api(kind: ApiType) -> Shape {
    Shape::Api(kind, Vec::new())
}

fn list(item: Shape) -> Shape {
    Shape::List(Box::new(item))
}

fn map(value: Shape) -> Shape {
    Shape::Map(Box::new(value))
}

/// Returns the shape of an object with fields of any shape.
fn object_of(fields: &[&'static str]) -> Shape {
    Object(fields.iter().map(|field| (*field, Any)).collect())
}

/// Fields of the statistics of a file system.
const FILE_SYSTEM_FIELDS: [&str; 7] =
    ["time", "availableBytes", "capacityBytes", "usedBytes", "inodesFree", "inodes", "inodesUsed"];

/// Fields of the statistics of a volume beside those of its file system.
const VOLUME_FIELDS: [&str; 3] = ["name", "pvcRef", "volumeHealthStats"];

fn file_system() -> Shape {
    object_of(&FILE_SYSTEM_FIELDS)
}

fn memory() -> Shape {
    object_of(&[
        "time",
        "availableBytes",
        "usageBytes",
        "workingSetBytes",
        "rssBytes",
        "pageFaults",
        "majorPageFaults",
        "psi",
    ])
}

fn container_stats() -> Shape {
    Object(vec![
        ("name", Any),
        ("startTime", Any),
        ("memory", memory()),
        ("rootfs", file_system()),
        ("logs", file_system()),
    ])
}

fn pod_stats() -> Shape {
    let volume = [&FILE_SYSTEM_FIELDS[..], &VOLUME_FIELDS].concat();
    Object(vec![
        ("podRef", object_of(&["name", "namespace", "uid"])),
        ("memory", memory()),
        ("process_stats", object_of(&["process_count"])),
        ("ephemeral-storage", file_system()),
        ("volume", list(object_of(&volume))),
        ("containers", list(container_stats())),
    ])
}

/// A sample of the Summary (`k8s.io/kubelet/pkg/apis/stats/v1alpha1`).
fn sample() -> Shape {
    let node = Object(vec![
        ("memory", memory()),
        ("fs", file_system()),
        ("runtime", Object(vec![("imageFs", file_system()), ("containerFs", file_system())])),
        ("rlimit", object_of(&["time", "maxpid", "curproc"])),
        ("systemContainers", list(Object(vec![("name", Any), ("memory", memory())]))),
    ]);
    Object(vec![("t", Any), ("node", node), ("pods", list(pod_stats()))])
}
