//! The reader takes any text: it never panics, and what it reads it writes again as it was.

#![no_main]

use std::collections::BTreeMap;

use evictlab_rules::message::{Annotations, EvictionMessage};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<EvictionMessage>() {
        Ok(message) => assert_eq!(message.to_string(), text),
        Err(error) => assert!(text.is_char_boundary(error.offset) && !error.to_string().is_empty()),
    }
    let mut lines = text.lines();
    let all: BTreeMap<String, String> = ["offending_containers", "offending_containers_usage", "starved_resource"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), lines.next()?.to_owned())))
        .collect();
    if let Ok(Some(annotations)) = Annotations::read(&all) {
        assert_eq!(annotations.write(), all);
    }
});
