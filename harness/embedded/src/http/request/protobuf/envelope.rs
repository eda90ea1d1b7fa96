//! The envelope of protobuf bodies.

use serde_json::{Map, json};

use super::decode::decode_message;
use super::schema::Schema;
use super::wire::{self, WireValue, fields};
use crate::apiserver::Status;

/// Prefix of every body.
const MAGIC: &[u8] = b"k8s\0";

/// Converts a body to JSON.
///
/// # Errors
/// 400 for a malformed body and for kinds that are not in the schema.
pub(crate) fn to_json(body: &[u8]) -> Result<Vec<u8>, Status> {
    let invalid = |error: String| Status::bad_request(format!("error decoding protobuf: {error}"));
    let body = body.strip_prefix(MAGIC).ok_or_else(|| invalid("the body has no prefix".into()))?;
    let envelope = Envelope::parse(body).map_err(|error| invalid(error.to_string()))?;
    let (kind, version) = (&envelope.kind, &envelope.api_version);
    let schema = Schema::parse();
    let mut object = Map::from_iter([("kind".into(), json!(kind)), ("apiVersion".into(), json!(version))]);
    let Some(known) = schema.message(kind) else {
        return Err(invalid(format!("the embedded cluster does not read {kind} of {version}")));
    };
    decode_message(&schema, known, envelope.raw, &mut object).map_err(|error| invalid(error.to_string()))?;
    serde_json::to_vec(&object).map_err(|error| invalid(error.to_string()))
}

/// `runtime.Unknown`
#[derive(Default)]
struct Envelope<'a> {
    kind: String,
    api_version: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn parse(body: &'a [u8]) -> quick_protobuf::Result<Self> {
        let mut envelope = Self::default();
        for field in fields(body)? {
            match field {
                (1, WireValue::Bytes(types)) => {
                    for field in fields(types)? {
                        match field {
                            (1, WireValue::Bytes(text)) => envelope.api_version = wire::decode_utf8(text),
                            (2, WireValue::Bytes(text)) => envelope.kind = wire::decode_utf8(text),
                            _ => {}
                        }
                    }
                }
                (2, WireValue::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Encodes a short field of bytes: number, length, content.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    fn body(version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
        let types = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &types), &field(2, object)].concat()
    }

    fn read(version: &str, kind: &str, object: &[u8]) -> Value {
        serde_json::from_slice(&to_json(&body(version, kind, object)).unwrap()).unwrap()
    }

    #[test]
    fn decodes_bodies_of_go_clients() {
        // Go writes empty fields that are not pointers.
        let time = [0x08, 0x80, 0xf2, 0xd6, 0xca, 0x06];
        let label = [field(1, b"a"), field(2, b"b")].concat();
        let metadata = [field(1, b"p"), field(2, b""), field(8, &time), field(11, &label)].concat();
        let quantity = [field(1, b"memory"), field(2, &field(1, b"1Gi"))].concat();
        let port = [field(1, b""), vec![0x18, 80]].concat();
        let container = [
            field(1, b"c"),
            field(2, b"i"),
            field(3, b"x"),
            field(3, b"y"),
            field(6, &port),
            field(8, &field(1, &quantity)),
        ]
        .concat();
        let volume = [field(1, b"v"), field(2, &field(2, &field(1, b"")))].concat();
        let spec =
            [field(1, &volume), field(2, &container), vec![0x20, 0], vec![0x58, 0], vec![0xa8, 0x01, 0]]
                .concat();
        let pod = [field(1, &metadata), field(2, &spec), field(3, &field(1, b"Pending"))].concat();
        assert_eq!(
            read("v1", "Pod", &pod),
            json!({
                "kind": "Pod", "apiVersion": "v1",
                "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}},
                "spec": {
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "containers": [{
                        "name": "c", "image": "i", "command": ["x", "y"], "ports": [{"containerPort": 80}], "resources": {"limits": {"memory": "1Gi"}},
                    }],
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": false,
                },
            })
        );
        let budget =
            field(2, &[field(1, &[&[0x08, 1, 0x10, 0][..], &field(3, b"50%")].concat()), vec![]].concat());
        let budget = read("policy/v1", "PodDisruptionBudget", &budget);
        assert_eq!(budget["spec"], json!({"minAvailable": "50%"}));
    }

    #[test]
    fn rejects_malformed_and_unknown_bodies() {
        let message = |body: &[u8]| to_json(body).unwrap_err().message;
        assert_eq!(message(b"{}"), "error decoding protobuf: the body has no prefix");
        assert!(
            message(&body("apps/v1", "StatefulSet", b"")).ends_with("does not read StatefulSet of apps/v1")
        );
        assert!(to_json(&body("v1", "Pod", &[0x0a, 200])).is_err());
    }

    #[test]
    fn schema_has_every_referenced_message() {
        let schema = Schema::parse();
        for (name, message) in schema.messages() {
            for field in message.values() {
                let known = field.kind.message().is_none_or(|name| schema.message(name).is_some());
                assert!(known, "{name}: {field:?}");
            }
        }
    }
}
