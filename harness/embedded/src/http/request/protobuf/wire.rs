//! The wire format of protobuf.

use quick_protobuf::{BytesReader, Result};

/// Wire type of a number (`VARINT`).
const VARINT: u32 = 0;
/// Wire type of bytes with their length (`LEN`).
const LEN: u32 = 2;

/// Encoded value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    /// Integer or boolean.
    Number(u64),
    /// String, bytes or message.
    Bytes(&'a [u8]),
}

/// Returns numbers and values of the fields of a message, in their order. Skips floating-point
/// numbers, which no supported message has.
pub(crate) fn fields(bytes: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>> {
    let mut reader = BytesReader::from_bytes(bytes);
    let mut fields = Vec::new();
    while !reader.is_eof() {
        let tag = reader.next_tag(bytes)?;
        // The lowest three bits of a tag are the wire type, the others the number of the field.
        let (field, wire_type) = (tag >> 3, tag & 7);
        match wire_type {
            VARINT => fields.push((field, WireValue::Number(reader.read_varint64(bytes)?))),
            LEN => fields.push((field, WireValue::Bytes(reader.read_bytes(bytes)?))),
            _ => reader.read_unknown(bytes, tag)?,
        }
    }
    Ok(fields)
}

/// Decodes UTF-8; invalid bytes become replacement characters.
pub(crate) fn decode_utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
