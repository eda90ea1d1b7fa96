//! The promises of `shared-cluster.md`, each with the test that fails without it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

/// Checks that every row of a table with the column `test` names tests, and that each test that the
/// guide names exists.
pub fn check(project: &Path) -> Result<(), String> {
    let guide = fs::read_to_string(project.join("harness/guides/shared-cluster.md")).unwrap();
    let mut tests = BTreeSet::new();
    ["harness", "cases"].iter().for_each(|dir| add_tests(&project.join(dir), &mut tests));
    let named = named_tests(&guide);
    assert!(named.len() > 15 && tests.len() > 500, "{} of {} tests", named.len(), tests.len());
    if let Some(missing) = named.iter().find(|name| !tests.contains(*name)) {
        return Err(format!("shared-cluster.md names the test {missing}, which does not exist"));
    }
    match rows_without_test(&guide).first() {
        Some(row) => Err(format!("shared-cluster.md makes a promise without a test: {row}")),
        None => Ok(()),
    }
}

/// Names in code spans that are those of functions: words joined by underscores.
fn named_tests(text: &str) -> BTreeSet<String> {
    let name = Regex::new("`([a-z0-9]+(?:_[a-z0-9]+)+)`").unwrap();
    name.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

fn rows_without_test(guide: &str) -> Vec<&str> {
    let mut has_tests = false;
    let mut rows = Vec::new();
    for line in guide.lines() {
        let is_row = line.starts_with('|');
        has_tests = if is_row { has_tests || line.trim_end().ends_with("| test |") } else { false };
        let is_head = line.trim_end().ends_with("| test |") || line.contains("| --- |");
        if is_row && has_tests && !is_head && named_tests(line).is_empty() {
            rows.push(line);
        }
        // A table without the column makes no promises, or this list is not complete.
        if is_row && !has_tests && !is_head {
            rows.push(line);
        }
    }
    rows
}

/// Adds the names of the functions with a test attribute in the files below a directory.
fn add_tests(dir: &Path, tests: &mut BTreeSet<String>) {
    let test =
        Regex::new(r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)").unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_tests(&path, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            tests.extend(test.captures_iter(&text).map(|found| found[1].to_owned()));
        }
    }
}
