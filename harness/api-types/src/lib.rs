//! The types of the Kubernetes API: the fields of each kind of object.
//!
//! Objects stay JSON in most of evictlab, so that fields newer than k8s-openapi's types are kept.
//! This crate compares such objects with the types, lists the fields of a type at a path, merges
//! changes into objects, and splits references to images.
//!
//! ```
//! use evictlab_api_types::ApiType;
//! use serde_json::json;
//!
//! let pod = json!({"spec": {"containers": [{"name": "app", "imagePolicy": "Always"}]}});
//! let mismatches = ApiType::of_kind("Pod").unwrap().mismatches(&pod);
//! assert_eq!(mismatches[0].to_string(), "spec.containers[0].imagePolicy: unknown field");
//! ```
//!
//! Deserializers are generic over both the type and the format, and the types of the API are
//! hundreds of structs: each format would compile all of them again. [`read`] and the comparisons
//! therefore have one deserializer, of JSON values.

mod api_type;
mod image_reference;
mod merge;
mod mismatch;
mod newer_fields;
mod path;
mod reader;
mod shape_at;

pub use api_type::ApiType;
pub use image_reference::ImageReference;
pub use merge::merge_fields;
pub use mismatch::{Difference, Mismatch};
pub use newer_fields::is_newer_field;
pub use path::PathSegment;
pub use reader::{ReadError, ValueShape, read};
pub use shape_at::TypeSegment;
