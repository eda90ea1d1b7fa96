//! The fields of a pod that eviction depends on.
//!
//! A [`Pod`] deserializes from the API server's JSON and ignores all other fields. Its methods
//! compute requests, limits, the QoS class and the exemption of critical pods, by kubelet version
//! where versions differ.

mod manifest;
mod qos;
mod requests;

pub use manifest::{
    CONFIG_MIRROR_ANNOTATION, CONFIG_SOURCE_ANNOTATION, Container, ContainerStatus, EmptyDir,
    IMAGE_ERROR_REASONS, ObjectMeta, Pod, PodSpec, PodStatus, ResourceRequirements, SYSTEM_CRITICAL_PRIORITY,
    Volume,
};
pub use qos::QosClass;
