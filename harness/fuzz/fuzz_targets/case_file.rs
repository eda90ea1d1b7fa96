//! A case file of any text is loaded or rejected with problems that lie in it. A case that was
//! loaded has the same name in its identity, and its name is a safe file name.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match evictlab_case::parse("fuzz", "fuzz/case.yaml", "fuzz/case.yaml", bytes) {
        Ok(loaded) => {
            let id = loaded.id();
            assert!(id.strip_prefix("fuzz/").is_some_and(is_plain_name), "{id:?}");
            assert_eq!(loaded.pod_lines().len(), loaded.case.pods.len());
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
});

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
}
