//! Pods that cannot be decoded.

use serde_json::{Map, Value, json};

use crate::missing::{EvidenceSource, MissingEvidence};
use crate::objects::RecordedPod;
use crate::recorded::{DecodeError, Recorded};

/// A version of a pod that the API server returned, and that cannot be decoded: the pod exists, and
/// its state is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecodablePod {
    /// Name of the pod in the case; empty if the document does not have one.
    pub(crate) name: String,
    /// `metadata.uid`.
    pub(crate) uid: Option<String>,
    /// Text of the error.
    pub(crate) cause: String,
}

impl UndecodablePod {
    /// Reads the name and the UID of a document that cannot be decoded because of `error`.
    pub fn new(document: &Value, error: &DecodeError) -> Self {
        let identity = identity(document);
        let uid = identity.as_ref().and_then(|pod| pod.uid().map(str::to_owned));
        let name = identity.map(|pod| pod.case_name().to_owned()).unwrap_or_default();
        Self { name, uid, cause: error.to_string() }
    }

    /// Returns the end of the pod as missing evidence; all pods, if its name is not known.
    pub fn missing_evidence(&self) -> MissingEvidence {
        let source = match self.name.as_str() {
            "" => EvidenceSource::Pods,
            name => EvidenceSource::Pod(name.to_owned()),
        };
        MissingEvidence::new(source, &self.cause)
    }
}

/// Decodes only the texts by which a pod has its name in the case.
fn identity(document: &Value) -> Option<RecordedPod> {
    let text = |path: &str| document.pointer(path).filter(|value| value.is_string());
    let annotations = document.pointer("/metadata/annotations").and_then(Value::as_object);
    let annotations: Map<String, Value> = annotations
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.is_string())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let metadata =
        json!({"name": text("/metadata/name"), "uid": text("/metadata/uid"), "annotations": annotations});
    let spec = json!({"nodeName": text("/spec/nodeName"), "containers": []});
    Recorded::decode(json!({"metadata": metadata, "spec": spec})).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_cannot_be_decoded_has_the_name_of_the_case() {
        let mirror = json!({"kubernetes.io/config.mirror": "hash", "broken": 1});
        let rows = [
            (json!({"name": "web", "uid": "u"}), "pods/web", Some("u")),
            (json!({"name": "hog-node-1", "annotations": mirror}), "pods/hog", None),
            (json!({"name": ["web"], "uid": 7}), "pods", None),
            (json!("web"), "pods", None),
        ];
        for (metadata, source, uid) in rows {
            let document = json!({"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": 1});
            let error = RecordedPod::decode(document.clone()).unwrap_err();
            let pod = UndecodablePod::new(&document, &error);
            let missing = pod.missing_evidence();
            assert_eq!(
                (missing.source.to_string(), pod.uid.as_deref()),
                (source.to_owned(), uid),
                "{document}"
            );
            assert!(missing.cause.starts_with("failed to decode Pod at "), "{}", missing.cause);
        }
    }
}
