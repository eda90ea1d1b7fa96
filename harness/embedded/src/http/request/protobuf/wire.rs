//! The wire format of protobuf.

use quick_protobuf::{BytesReader, Result};

/// Encoded value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire<'a> {
    /// Integer or boolean.
    Number(u64),
    /// String, bytes or message.
    Bytes(&'a [u8]),
}

/// Returns numbers and values of the fields of a message, in their order. Skips floating-point
/// numbers, which no supported message has.
pub(crate) fn fields(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>> {
    let mut reader = BytesReader::from_bytes(bytes);
    let mut fields = Vec::new();
    while !reader.is_eof() {
        let tag = reader.next_tag(bytes)?;
        match tag & 7 {
            0 => fields.push((tag >> 3, Wire::Number(reader.read_varint64(bytes)?))),
            2 => fields.push((tag >> 3, Wire::Bytes(reader.read_bytes(bytes)?))),
            _ => reader.read_unknown(bytes, tag)?,
        }
    }
    Ok(fields)
}

/// Converts bytes to a string.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
