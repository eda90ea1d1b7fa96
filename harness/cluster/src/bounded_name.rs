//! Names of a limited length.

use crate::sha256::sha256_hex;

/// Number of digits of the hash in a name that was cut.
const HASH_DIGITS: usize = 8;

/// Returns a name of at most `max` bytes. A longer name is cut, and ends with a hash of itself, so
/// that different names stay different; it still begins and ends with a letter or a digit.
pub(crate) fn bounded_name(name: &str, max: usize) -> String {
    if name.len() <= max {
        return name.to_owned();
    }
    let hash = &sha256_hex(name.as_bytes())[..HASH_DIGITS];
    let most = max.saturating_sub(HASH_DIGITS + 1);
    let end = (0..=most).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    format!("{}-{hash}", name[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_stay_different() {
        assert_eq!(bounded_name("canary-n1", 63), "canary-n1");
        let exact = "a".repeat(63);
        assert_eq!(bounded_name(&exact, 63), exact);
        let names = ["a", "b"].map(|end| bounded_name(&format!("{}{end}", "a.".repeat(126)), 63));
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.len() <= 63 && !name.contains(".-"), "{name}");
            assert!(name.ends_with(|c: char| c.is_ascii_alphanumeric()), "{name}");
        }
        assert!(bounded_name(&"ä".repeat(63), 63).len() <= 63);
    }
}
