//! Versions in examples: every one works on a machine without node images, because evictlab knows
//! an image for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evictlab_cluster::images::ImageCatalog;
use regex::Regex;

/// Files and directories with examples.
const EXAMPLES: [&str; 11] = [
    "README.md",
    "CONTRIBUTING.md",
    "action.yml",
    "cases/README.md",
    "harness/guides",
    "harness/rules/recordings/README.md",
    "images/README.md",
    "kind-configs",
    "results/README.md",
    ".github/workflows",
    ".ci",
];

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| files(&entry.unwrap().path(), found))
    } else {
        found.push(path.to_owned())
    }
}

/// Returns the help of a command and of its subcommands.
fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_evictlab")).args(words).arg("--help").output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    let commands =
        text.split_once("Commands:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap().to_owned());
    let name = Regex::new(r"(?m)^  ([a-z][a-z-]*) ").unwrap();
    for found in name.captures_iter(commands.as_deref().unwrap_or_default()) {
        if &found[1] != "help" {
            text += &help(&[words, &[&found[1]]].concat());
        }
    }
    text
}

/// Returns the versions of the commands and arguments in a text; outputs of commands name others.
fn versions(text: &str) -> BTreeSet<String> {
    let command = Regex::new(
        r"(?:--(?:kubelet|before|after|good|bad|node-image)[ =]|kubelets: |kindest/node:|EVICTLAB_KUBELETS=)[^|`]*",
    )
    .unwrap();
    let version = Regex::new(r"\bv1\.\d+(?:\.\d+(?:-[a-z]+\.\d+)?)?\b").unwrap();
    let commands = command.find_iter(text).map(|found| found.as_str().lines().next().unwrap_or_default());
    commands.flat_map(|line| version.find_iter(line)).map(|found| found.as_str().to_owned()).collect()
}

#[test]
fn every_version_in_an_example_has_a_node_image() {
    let catalog = ImageCatalog::load(None).unwrap();
    let known: BTreeSet<String> = catalog.nodes.keys().map(ToString::to_string).collect();
    let is_known = |version: &String| {
        known.contains(version)
            || version.matches('.').count() == 1
                && known.iter().any(|it| it.starts_with(&format!("{version}.")))
    };
    let mut paths = Vec::new();
    EXAMPLES.iter().for_each(|path| files(&project().join(path), &mut paths));
    let mut texts: Vec<_> =
        paths.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect();
    texts.push(("--help".to_owned(), help(&[])));
    let mut count = 0;
    for (name, text) in texts {
        let versions = versions(&text);
        count += versions.len();
        let unknown: Vec<_> = versions.iter().filter(|version| !is_known(version)).collect();
        assert!(unknown.is_empty(), "{name}: images.lock does not contain {unknown:?}");
    }
    assert!(count > 25, "{count} versions were found");
}

#[test]
fn versions_are_found_in_commands_only() {
    for (text, expected) in [
        ("evictlab run --kubelet v1.31 --kubelet v1.32.11", &["v1.31", "v1.32.11"][..]),
        ("`--node-image v1.32.11=kindest/node:mine` | v1.99.1", &["v1.32.11"]),
        ("    26.7s  v1.32.13  sidecars-are-named  tune", &[]),
        ("include: {kubelets: v1.35 v1.34}", &["v1.34", "v1.35"]),
        ("docker pull kindest/node:v1.37.0-rc.1@sha256:…", &["v1.37.0-rc.1"]),
        ("EVICTLAB_KUBELETS=v1.31.14,v1.32.11 cargo test", &["v1.31.14", "v1.32.11"]),
    ] {
        assert_eq!(versions(text).iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
    }
}
