//! SHA-256 as text.

use ring::digest::{Context, SHA256};

/// Returns the SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    sha256_of_parts([bytes])
}

/// Returns the SHA-256 of the concatenation of parts as 64 lower-case hexadecimal digits.
pub(crate) fn sha256_of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut context = Context::new(&SHA256);
    parts.into_iter().for_each(|part| context.update(part));
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
