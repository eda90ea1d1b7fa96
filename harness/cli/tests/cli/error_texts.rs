//! Snapshots of error texts: each variant of each error type is in the snapshot of its crate, and
//! each text states what failed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Errors that no snapshot contains, each with the reason.
const WITHOUT_SNAPSHOT: [(&str, &str); 1] = [("cluster: Request", "it exists only in a test")];

/// Errors whose text does not begin with `failed to`, each group with the reason. `Type` stands for
/// all variants.
const CAUSES: [(&str, &[&str]); 6] = [
    (
        "values of options and of case files: clap, or the problem of the file, names the option or the line",
        &[
            "ValueError",
            "DeletionError",
            "MultipleActionsError",
            "LoadErrors",
            "NewCaseNameError",
            "ExpressionError",
            "SelectError::Load",
            "LabelFilterError",
            "ShardError",
            "UnknownDefectError",
            "ScriptError",
            "DurationError",
            "SpanError",
            "VersionError",
            "CgroupVersionError",
            "QuantityError",
            "OptionsError",
            "NodeSelectorError",
            "TolerationError",
        ],
    ),
    (
        "parts of messages, annotations and documents: the error of the document names it",
        &["MessageParseError", "AnnotationError", "UnknownSource", "YamlError", "EncodingError"],
    ),
    (
        "texts of Kubernetes, of a shell and of programs, word for word",
        &[
            "UnknownSignalError",
            "ThresholdValueError",
            "GoDurationError",
            "GracePeriodError",
            "ThresholdConfigError",
            "ConfigError::Allocatable",
            "SelectorError",
            "ShellError",
            "SleepError",
            "ExecError",
            "NoSpace",
            "AgnhostError",
        ],
    ),
    (
        "causes that only follow `failed to …: `",
        &["StalledError", "ArchiveError", "PodResultsError", "QueryError", "LeaseLost", "AnswerError"],
    ),
    (
        "reasons of a case that is skipped, which is not a failure",
        &["SkipReason", "PressureForbidden", "NoUsableNode", "PlanError::Skip", "CaseError::Skip"],
    ),
    ("the command line of the stress image, whose usage errors read as those of clap", &["ArgumentError"]),
];

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

/// Returns the lines of the snapshots of error texts below a directory.
fn snapshot_lines(source: &Path) -> Vec<String> {
    let snapshots = files(source, "snap").into_iter();
    let texts = snapshots.filter(|file| file.to_str().unwrap().contains("error_texts"));
    texts
        .flat_map(|file| fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Returns each error of the snapshots with the first line of its text.
fn first_lines() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (_, source) in sources() {
        for pair in snapshot_lines(&source).windows(2) {
            if let Some(text) =
                pair[1].strip_prefix("    ").filter(|_| pair[0].starts_with(char::is_uppercase))
            {
                found.push((pair[0].clone(), text.to_owned()));
            }
        }
    }
    found
}

/// Returns the entry of [`CAUSES`] for an error.
fn cause(error: &str) -> Option<&'static str> {
    let (of, _) = error.split_once("::").unwrap_or((error, ""));
    CAUSES.iter().flat_map(|(_, names)| *names).find(|name| [error, of].contains(*name)).copied()
}

#[test]
fn each_error_states_what_failed_or_is_a_known_cause() {
    let lines = first_lines();
    assert!(lines.len() > 300, "only {} errors were found", lines.len());
    // An interrupt is not a failure.
    let others = lines.iter().filter(|(_, text)| !text.starts_with("failed to ") && text != "interrupted");
    let others: Vec<_> = others.map(|(error, text)| (cause(error), error, text)).collect();
    let wrong: Vec<_> = others.iter().filter(|(cause, ..)| cause.is_none()).collect();
    assert!(wrong.is_empty(), "begin with `failed to <verb> <object>: `, or add a cause: {wrong:#?}");
    let used: BTreeSet<&str> = others.iter().filter_map(|(cause, ..)| *cause).collect();
    let all: BTreeSet<&str> = CAUSES.iter().flat_map(|(_, names)| *names).copied().collect();
    assert_eq!(all, used, "remove the causes that are not used");
}

#[test]
fn each_error_is_in_the_snapshot_of_its_crate() {
    let (mut all, mut missing) = (0, BTreeSet::new());
    for (package, source) in sources() {
        let rows: BTreeSet<String> = snapshot_lines(&source).into_iter().collect();
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
