//! Parsing any text neither panics nor loses information: a parsed message prints as its text, and
//! parsed annotations as their map.

#![no_main]

use std::collections::BTreeMap;

use evictlab_rules::message::{Annotations, EvictionMessage};
use libfuzzer_sys::fuzz_target;

const KEYS: [&str; 3] = ["offending_containers", "offending_containers_usage", "starved_resource"];

fuzz_target!(|text: &str| {
    match text.parse::<EvictionMessage>() {
        Ok(message) => assert_eq!(message.to_string(), text),
        Err(error) => assert!(text.is_char_boundary(error.offset) && !error.to_string().is_empty()),
    }
    // One annotation a line.
    let mut lines = text.lines();
    let map: BTreeMap<String, String> = KEYS
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), lines.next()?.to_owned())))
        .collect();
    if let Ok(Some(annotations)) = Annotations::from_map(&map) {
        assert_eq!(annotations.to_map(), map);
    }
});
