//! All that a run is asked for.

use std::sync::Arc;
use std::time::Duration;

use super::Repeat;
use crate::case::LoadedCase;
use crate::cluster::Backend;
use crate::images::Lock;
use crate::report::baseline::Baseline;

/// All that a run is asked for.
pub struct Request {
    /// The run's id.
    pub run: String,
    /// The cases.
    pub cases: Vec<Arc<LoadedCase>>,
    /// Where the nodes come from.
    pub backend: Box<dyn Backend>,
    /// How often.
    pub repeat: Repeat,
    /// The longest that the whole run may take.
    pub timeout: Option<Duration>,
    /// Image names.
    pub lock: Arc<Lock>,
    /// The verdicts that the run is held against.
    pub baseline: Option<Baseline>,
}

/// A new run's id: eight letters and digits, good for a name.
pub fn new_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    // The standard library's source of randomness.
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    let letter = |_| {
        let letter = LETTERS[(random % LETTERS.len() as u64) as usize];
        random /= LETTERS.len() as u64;
        char::from(letter)
    };
    (0..8).map(letter).collect()
}
