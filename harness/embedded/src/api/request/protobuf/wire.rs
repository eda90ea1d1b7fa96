//! The wire format: numbers and what they stand for.

use quick_protobuf::{BytesReader, Result};

/// What is written for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire<'a> {
    /// An integer or a truth.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
}

/// The fields of a message, in their order. Floating-point numbers, of which no message here has any, are left out.
pub fn fields(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>> {
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

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
