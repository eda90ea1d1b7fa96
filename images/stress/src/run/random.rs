//! Bytes that do not compress: a file system, a swap device or the kubelet's log rotation would
//! store less than the requested amount.

use evictlab_rules::quantity::KIB;

/// The number of bytes that are generated at once.
pub(super) const BLOCK: usize = 64 * KIB as usize;

/// A xorshift64* generator. Not suitable for secrets.
pub(super) struct RandomBytes(u64);

impl RandomBytes {
    pub(super) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> [u8; 8] {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    }

    /// Fills a buffer with bytes.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next()[..chunk.len()]);
        }
    }

    /// Fills a buffer with characters of base64.
    pub(super) fn fill_letters(&mut self, bytes: &mut [u8]) {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.fill(bytes);
        bytes.iter_mut().for_each(|byte| *byte = LETTERS[usize::from(*byte % 64)]);
    }
}
