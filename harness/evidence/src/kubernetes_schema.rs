//! JSON Schemas of Kubernetes objects in the evidence. Kubernetes describes their fields.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Defines types that describe objects of Kubernetes by a title.
macro_rules! kubernetes_objects {
    ($($type:ident: $title:literal,)*) => {$(
        pub(crate) struct $type;

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "object", "title": $title })
            }
        }
    )*};
}

kubernetes_objects! {
    PodSchema: "Kubernetes object `Pod` (v1)",
    EventSchema: "Kubernetes object `Event` (v1)",
    NodeSchema: "Kubernetes object `Node` (v1)",
    StatusSchema: "Kubernetes object `Status` (v1)",
    NodeConditionSchema: "`NodeCondition` of a Kubernetes `Node` (v1)",
    TaintSchema: "`Taint` of a Kubernetes `Node` (v1)",
    ObjectSchema: "Kubernetes object of any kind",
    KubeletConfigurationSchema: "`KubeletConfiguration` (kubelet.config.k8s.io/v1beta1)",
    SummarySchema: "`Summary` of the kubelet (stats/v1alpha1)",
    StatisticsSchema: "statistics of the kubelet's `Summary` (stats/v1alpha1)",
    PodReferenceSchema: "`podRef` of the kubelet's `Summary`: name, namespace, uid",
}
