//! A case file of any content is loaded or rejected with problems; it never panics.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The texts of the shipped cases.
static CASES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let cases = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases"));
    let suites = ["message", "limits", "relatives", "thresholds", "signals"].map(|suite| cases.join(suite));
    let files = suites.iter().flat_map(|suite| fs::read_dir(suite).unwrap()).map(|file| file.unwrap().path());
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
});

const VALUES: [&str; 20] = [
    "null",
    "-1",
    "1e400",
    "9223372036854775808",
    "99999999999999999999h",
    "[]",
    "{}",
    "[a, [b, {c: d}]]",
    "'\u{1b}[2J'",
    "../../etc",
    "'a b; id'",
    "$(id)",
    "&a [*a, *a]",
    "!!binary x",
    "size(pods.a) ==",
    "'pods.all(p, pods.all(q, pods.all(r, true)))'",
    "memory.available",
    ">=1.29 ||",
    "|\n  a\n",
    "é",
];

fn try_to_load(text: &str) {
    match evictlab_case::parse("suite", "suite/case.yaml", "suite/case.yaml", text.as_bytes()) {
        Ok(loaded) => {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(loaded.case.name.as_str().chars().all(is_plain), "{:?}", loaded.case.name.as_str());
            assert_eq!(loaded.pod_lines().len(), loaded.case.pods.len());
        }
        Err(errors) => {
            let text = errors.to_string();
            assert!(text.contains("suite/case.yaml"), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..64)) {
        try_to_load(&String::from_utf8_lossy(&bytes));
    }

    /// Shipped cases of which some lines are missing, moved, or have another value.
    #[test]
    fn changed_cases(case in any::<Index>(), changes in vec((any::<Index>(), 0..5u8, select(&VALUES[..])), 1..5)) {
        let mut lines: Vec<String> = case.get(&CASES[..]).lines().map(str::to_owned).collect();
        for (index, change, value) in changes {
            let at = index.index(lines.len());
            match change {
                0 if lines.len() > 1 => drop(lines.remove(at)),
                1 => lines.swap(at, 0),
                2 => lines.insert(at, format!("  {value}")),
                _ => {
                    let key = lines[at].split(": ").next().unwrap_or_default().to_owned();
                    lines[at] = format!("{key}: {value}");
                }
            }
        }
        try_to_load(&lines.join("\n"));
    }
}
