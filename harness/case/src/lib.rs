//! Case files: schema, loading with errors that point to the line, selection and expressions.
//!
//! A [`Case`] states a behaviour of the kubelet in YAML. [`load`] reads suites of cases, checks
//! them and reports all problems at once; to list cases, [`CaseFiles`] reads them only. [`select`]
//! picks the cases of a run; [`expression`] evaluates the CEL expressions of a case.
//!
//! ```
//! let yaml = b"
//! name: idle-pod-survives
//! about: A pod without usage is not evicted.
//! pods: [{metadata: {name: idle}, spec: {containers: [{name: pause, image: pause}]}}]
//! expect: {evicted: []}
//! ";
//! let file = "demo/idle-pod-survives.yaml";
//! let loaded = evictlab_case::parse("demo", file, file, yaml)?;
//! assert_eq!(loaded.id(), "demo/idle-pod-survives");
//!
//! let misspelled = String::from_utf8_lossy(yaml).replace("about:", "abuot:");
//! let errors = evictlab_case::parse("demo", file, file, misspelled.as_bytes()).unwrap_err();
//! assert!(errors.to_string().starts_with("unknown key `abuot`"));
//! # Ok::<(), evictlab_case::LoadErrors>(())
//! ```
#![deny(unreachable_pub)]

mod action;
mod api_rejection;
mod assertion;
mod case_name;
mod check;
mod deadline;
mod domain;
mod existing_namespace;
mod expect;
pub mod expression;
mod kubelet_fields;
mod kubelet_metrics;
mod listed_case;
mod load;
mod manifest_types;
mod new_case;
mod node_setup;
mod object_name;
mod object_pod_spec;
mod origin;
pub mod positions;
mod pressure;
mod pressure_pod;
mod pressure_signal;
mod problem;
mod schema;
pub mod select;
mod serde_words;
mod step;
mod values;
mod warnings;
mod words;
mod yaml_problem;

pub use action::{
    Action, ApiRequest, ContainerCommand, Deletion, DeletionError, NodeChange, ObjectPatch,
    ResizableResource, Resize, Taint, TaintEffect,
};
pub use api_rejection::ApiRejection;
pub use assertion::{Assertion, ExpectedRate, display_value};
pub use case_name::{CASE_NAME_ANNOTATION, case_name};
pub use domain::DOMAIN_PREFIX;
pub use existing_namespace::{EXPIRY_NAME, MAX_CREATED_PODS, QUOTA_NAME};
pub use expect::{
    ContainerLimit, Expect, ExpectedApiRejection, ExpectedEvictions, ExpectedMessage, Presence,
    ResourceAmounts, VolumeLimit, Witness,
};
pub use listed_case::ListedCase;
pub use load::{
    BuiltInCase, CaseFiles, LoadedCase, ParsedCase, SCHEMA_FILE, Source, duplicate_names, load, load_paths,
    parse,
};
pub use manifest_types::{
    CONTAINER_LISTS, CapabilitiesManifest, ContainerManifest, HostPathManifest, MetadataManifest,
    ObjectManifest, PodSpecManifest, PodTemplateSpec, PortManifest, ResourcesManifest,
    SYSTEM_PRIORITY_CLASSES, SecurityManifest, VariableManifest, VolumeManifest, WorkloadSpecManifest,
    containers_of, has_kind, parse_amount,
};
pub use new_case::{NewCase, NewCaseError, NewCaseNameError};
pub use node_setup::{ContainerfsPlacement, FileSystems, NodeSetup, PodPlacement};
pub use object_name::{ObjectKind, ObjectName};
pub use object_pod_spec::ObjectPodSpec;
pub use pressure::{GROWTH_VARIABLES, Pressure, PressureMechanism};
pub use pressure_pod::PressurePod;
pub use pressure_signal::PressureSignal;
pub use problem::{LineMark, LoadErrors, Problem, SourceSpan, did_you_mean, nearest};
pub use schema::{Case, EphemeralContainer, KnownBug, json_schema, unwrap_descriptions};
pub use step::{MultipleActionsError, Step};
pub use values::{
    Comparison, DurationText, KubeletRequirement, Name, Pattern, QuantityText, ResizedRequest, Upstream,
    UsageBound, ValueError, WholeSeconds,
};
pub use words::count_noun;
pub use yaml_problem::{document_problem, yaml_problem};

#[cfg(test)]
mod error_texts;
#[cfg(test)]
mod fixtures;
