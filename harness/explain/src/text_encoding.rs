//! Encodings of input.

/// The text of a file is not readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// The bytes are neither UTF-8 nor UTF-16.
    #[error(
        "the text is neither UTF-8 nor UTF-16: byte {offset} is not part of a character\nhelp: save the text as UTF-8; in PowerShell: kubectl get events,pods,nodes -o yaml | Out-File -Encoding utf8 events.yaml"
    )]
    Unknown {
        /// Offset of the first byte that could not be read.
        offset: usize,
    },
    /// The bytes begin like UTF-16.
    #[error(
        "the text begins as UTF-16 and is damaged or cut\nhelp: save the text as UTF-8; in PowerShell: kubectl get events,pods,nodes -o yaml | Out-File -Encoding utf8 events.yaml"
    )]
    Utf16,
}

/// Decodes UTF-8, or UTF-16 with a byte order mark, which the operator `>` of PowerShell writes.
///
/// # Errors
/// The bytes are in another encoding, or end within a character.
pub fn decode_text(bytes: Vec<u8>) -> Result<String, EncodingError> {
    match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] => decode_utf16(units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => decode_utf16(units, u16::from_be_bytes),
        _ => String::from_utf8(bytes)
            .map_err(|error| EncodingError::Unknown { offset: error.utf8_error().valid_up_to() }),
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, EncodingError> {
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(EncodingError::Utf16);
    }
    let units = pairs.map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| EncodingError::Utf16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_and_both_byte_orders_are_decoded() {
        const TEXT: &str = "kind: Pod # é🦀";
        let units = || TEXT.encode_utf16();
        let little: Vec<u8> = [0xff, 0xfe].into_iter().chain(units().flat_map(u16::to_le_bytes)).collect();
        let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(units().flat_map(u16::to_be_bytes)).collect();
        let cut = little[..little.len() - 1].to_vec();
        // The first half of a surrogate pair.
        let half = little[..little.len() - 2].to_vec();
        let rows = [
            (TEXT.as_bytes().to_vec(), Ok(TEXT)),
            (little, Ok(TEXT)),
            (big, Ok(TEXT)),
            (Vec::new(), Ok("")),
            (cut, Err(EncodingError::Utf16)),
            (half, Err(EncodingError::Utf16)),
            (b"ab\xff".to_vec(), Err(EncodingError::Unknown { offset: 2 })),
        ];
        for (bytes, expected) in rows {
            assert_eq!(decode_text(bytes.clone()), expected.map(str::to_owned), "{bytes:x?}");
        }
    }
}
