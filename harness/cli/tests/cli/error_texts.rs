//! Snapshots of error texts: each variant of each error type is in the snapshot of its crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Errors that no snapshot contains, each with the reason.
const WITHOUT_SNAPSHOT: [(&str, &str); 1] = [("cluster: Request", "it exists only in a test")];

/// Returns the files with an extension below a directory.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|actual| actual == extension) {
            found.push(path);
        }
    }
    found
}

/// Returns the directory `src` of each package, with the name of the package's directory.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = ["harness", "images"].map(|dir| fs::read_dir(root.join(dir)).unwrap());
    let packages = packages.into_iter().flatten().map(|entry| entry.unwrap().path());
    packages
        .filter(|package| package.join("src").is_dir())
        .map(|package| (package.file_name().unwrap().to_str().unwrap().to_owned(), package.join("src")))
        .collect()
}

/// Returns `Type::Variant` for each variant of an error enum of the code, and `Type` for each
/// error struct and for each type that implements the trait itself.
fn errors(code: &str) -> Vec<String> {
    let derived = Regex::new(concat!(
        r"(?ms)#\[derive\([^)]*\bError\b[^)]*\)\]",
        r".*?^ *(?:pub(?:\([a-z]+\))? )?(?:struct (?<struct>\w+)|enum (?<enum>\w+) \{\n(?<variants>.*?)^\})",
    ))
    .unwrap();
    let variant = Regex::new(r"(?m)^    ([A-Z]\w*)(?:,| \{|\()").unwrap();
    let implemented = Regex::new(r"(?m)^impl std::error::Error for (\w+)").unwrap();
    let mut found: Vec<String> = implemented.captures_iter(code).map(|one| one[1].to_owned()).collect();
    for error in derived.captures_iter(code) {
        match error.name("struct") {
            Some(name) => found.push(name.as_str().to_owned()),
            None => {
                let variants = variant.captures_iter(&error["variants"]);
                found.extend(variants.map(|one| format!("{}::{}", &error["enum"], &one[1])));
            }
        }
    }
    found
}

#[test]
fn each_error_is_in_the_snapshot_of_its_crate() {
    let (mut all, mut missing) = (0, BTreeSet::new());
    for (package, source) in sources() {
        let snapshots = files(&source, "snap").into_iter();
        let texts = snapshots.filter(|file| file.to_str().unwrap().contains("error_texts"));
        let rows: BTreeSet<String> = texts
            .flat_map(|file| fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let code: String =
            files(&source, "rs").iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let found = errors(&code);
        all += found.len();
        let absent = found.into_iter().filter(|error| !rows.contains(error));
        missing.extend(absent.map(|error| format!("{package}: {error}")));
    }
    let exceptions = WITHOUT_SNAPSHOT.map(|(error, _)| error.to_owned());
    assert_eq!(missing, BTreeSet::from(exceptions), "add a row to the module error_texts of the crate");
    assert!(all > 300, "only {all} errors were found");
}
