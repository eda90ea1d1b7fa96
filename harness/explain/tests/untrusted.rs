//! Input of any content is explained or rejected; it never panics.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use evictlab_explain::{Input, explain};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const OBJECTS: &str = include_str!("../../fuzz/seeds/explain_input/event-and-pod.yaml");

const PARTS: [&str; 28] = [
    "The node was low on resource: memory. ",
    "Threshold quantity: ",
    "100Mi",
    ", available: ",
    "-1",
    "9223372036854775807Ei",
    "Container a was using 1Gi, request is 0, has larger consumption of memory. ",
    ", which exceeds its request of ",
    "Usage of EmptyDir volume \"",
    "\" exceeds the limit \"",
    "Pod ephemeral local storage usage exceeds the total limit of containers ",
    "The node had condition: [",
    "MemoryPressure",
    "]. ",
    ". ",
    "é",
    "&quot;",
    "`",
    "“",
    "shop/web-0: ",
    "\u{1b}[2J",
    "\n",
    "kind: Pod\n",
    "apiVersion: v1\n",
    "- ",
    "{",
    "&a [*a]",
    "\0",
];

fn try_to_explain(text: &str) {
    let Ok(input) = Input::read(text) else { return };
    let Ok(explanations) = explain(&input, None) else { return };
    assert!(explanations.iter().all(|explanation| !explanation.to_string().is_empty()));
    serde_json::to_string(&explanations).unwrap();
}

proptest! {
    #[test]
    fn any_text(parts in vec(prop_oneof![4 => select(&PARTS[..]).prop_map(str::to_owned), 1 => ".{0,6}"], 0..12)) {
        try_to_explain(&parts.concat());
    }

    /// Objects of which some lines are missing, exchanged, or have another value.
    #[test]
    fn changed_objects(changes in vec((any::<prop::sample::Index>(), 0..4u8, select(&PARTS[..])), 1..6)) {
        let mut lines: Vec<String> = OBJECTS.lines().map(str::to_owned).collect();
        for (index, change, part) in changes {
            let at = index.index(lines.len());
            match change {
                0 => drop(lines.remove(at)),
                1 => lines.swap(at, 0),
                2 => lines[at].push_str(part),
                _ => {
                    let key = lines[at].split(": ").next().unwrap_or_default().to_owned();
                    lines[at] = format!("{key}: {part}");
                }
            }
        }
        try_to_explain(&lines.join("\n"));
    }
}
