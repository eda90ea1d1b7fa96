//! Selection of cases by name, label, text, upstream issue and shard.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use regex::Regex;

use super::Shard;
use super::label_filter::LabelFilter;
use crate::load::{is_named, sort_key};
use crate::origin::STDIN;
use crate::{CaseFiles, LoadErrors, LoadedCase, ParsedCase, Source, Upstream, duplicate_names, nearest};

/// Selection criteria. Each applies to the cases that the previous ones selected.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Suites, cases, `suite/case`, case files, folders of case files, and `-` for a case from the
    /// standard input. Empty selects all cases of the source.
    pub names: Vec<String>,
    /// Filter on labels.
    pub label_filter: Option<LabelFilter>,
    /// Selects cases with a match of any of these in `suite/case about`.
    pub focus: Vec<Regex>,
    /// Rejects cases with a match of any of these in `suite/case about`.
    pub skip: Vec<Regex>,
    /// Selects cases that refer to any of these, as a topic or in a known bug.
    pub upstream: Vec<Upstream>,
    /// Selects one shard.
    pub shard: Option<Shard>,
}

/// Selecting cases failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SelectError {
    /// The case files cannot be loaded.
    #[error("{0}")]
    Load(#[from] LoadErrors),
    /// A name is unknown.
    #[error(
        "failed to find suite, case or file `{name}`\nhelp: {}",
        .nearest.as_ref().map_or_else(|| format!("the suites of {place} are {}", .suites.join(", ")),
            |near| format!("did you mean `{near}`?"))
    )]
    NoSuchName {
        /// Name.
        name: String,
        /// Displayed source of the cases.
        place: String,
        /// Suites of the source.
        suites: Vec<String>,
        /// Similar name.
        nearest: Option<String>,
    },
    /// The label filter selects no case.
    #[error("failed to select cases: the label filter `{filter}` matches none of {count} cases\nhelp: their labels are {}", .labels.join(", "))]
    NoLabelMatch {
        /// Label filter.
        filter: String,
        /// Number of cases before the filter.
        count: usize,
        /// Labels of these cases.
        labels: Vec<String>,
    },
    /// The focus selects no case.
    #[error(
        "failed to select cases: the focus {} matches none of {count} cases (matched against \"SUITE/CASE DESCRIPTION\")\nhelp: {}",
        .focus.join(" or "),
        .nearest.as_ref().map_or_else(|| "list the cases with `evictlab list`".to_owned(), |near| format!("did you mean `{near}`?"))
    )]
    NoFocusMatch {
        /// Expressions.
        focus: Vec<String>,
        /// Number of cases before the focus.
        count: usize,
        /// Similar name.
        nearest: Option<String>,
    },
    /// All cases are skipped.
    #[error("failed to select cases: {} skips all selected cases ({count})\nhelp: use an expression for --skip that matches fewer cases", .skip.join(" or "))]
    AllSkipped {
        /// Expressions.
        skip: Vec<String>,
        /// Number of cases that are skipped.
        count: usize,
    },
    /// No case refers to the upstream issue.
    #[error("failed to select cases: none of {count} cases refers to {}\nhelp: `evictlab list --json` shows the references of each case", .upstream.join(" or "))]
    NoUpstreamMatch {
        /// Issues.
        upstream: Vec<String>,
        /// Number of cases without the reference.
        count: usize,
    },
    /// There are more shards than cases.
    #[error(
        "failed to select shard {shard}: only {count} cases are selected\nhelp: use at most {count} shards"
    )]
    EmptyShard {
        /// Shard.
        shard: Shard,
        /// Number of selected cases.
        count: usize,
    },
}

/// Returns the selected cases, ordered by suite and name; at least one. Checks all cases that it
/// loads.
///
/// # Errors
/// The case files cannot be loaded, or the selection is empty.
pub fn select(source: &Source, selection: &Selection) -> Result<Vec<Arc<LoadedCase>>, SelectError> {
    select_with(source, selection, CaseFiles::checked)
}

/// Returns the selected cases as [`select`] does, to list them: does not check them.
///
/// # Errors
/// A case file cannot be parsed, or the selection is empty.
pub fn select_parsed(source: &Source, selection: &Selection) -> Result<Vec<Arc<ParsedCase>>, SelectError> {
    select_with(source, selection, CaseFiles::parsed)
}

/// Selects among the cases that `load` makes of files that were read.
fn select_with<C: Borrow<ParsedCase>>(
    source: &Source,
    selection: &Selection,
    load: fn(CaseFiles) -> Result<Vec<Arc<C>>, LoadErrors>,
) -> Result<Vec<Arc<C>>, SelectError> {
    let mut cases = find_by_names(source, &selection.names, load)?;
    if let Some(filter) = &selection.label_filter {
        filter_by_labels(&mut cases, filter)?;
    }
    if !selection.focus.is_empty() {
        filter_by_focus(&mut cases, &selection.focus)?;
    }
    let count = cases.len();
    cases.retain(|case| !selection.skip.iter().any(|skip| skip.is_match(&focus_text(parsed(case)))));
    if cases.is_empty() {
        return Err(SelectError::AllSkipped { skip: display_all(&selection.skip), count });
    }
    let count = cases.len();
    if !selection.upstream.is_empty() {
        cases.retain(|case| selection.upstream.iter().any(|issue| refers_to(parsed(case), issue)));
        if cases.is_empty() {
            let upstream = selection.upstream.iter().map(ToString::to_string).collect();
            return Err(SelectError::NoUpstreamMatch { upstream, count });
        }
    }
    let Some(shard) = selection.shard else { return Ok(cases) };
    let count = cases.len();
    let cases = shard.select(cases);
    if cases.is_empty() {
        return Err(SelectError::EmptyShard { shard, count });
    }
    Ok(cases)
}

fn parsed<C: Borrow<ParsedCase>>(case: &Arc<C>) -> &ParsedCase {
    (**case).borrow()
}

fn filter_by_labels<C: Borrow<ParsedCase>>(
    cases: &mut Vec<Arc<C>>,
    filter: &LabelFilter,
) -> Result<(), SelectError> {
    let count = cases.len();
    let labels: BTreeSet<String> = cases.iter().flat_map(|case| parsed(case).case.labels.clone()).collect();
    cases.retain(|case| filter.matches(&parsed(case).case.labels));
    if cases.is_empty() {
        let labels = labels.into_iter().collect();
        return Err(SelectError::NoLabelMatch { filter: filter.to_string(), count, labels });
    }
    Ok(())
}

fn filter_by_focus<C: Borrow<ParsedCase>>(
    cases: &mut Vec<Arc<C>>,
    focus: &[Regex],
) -> Result<(), SelectError> {
    let count = cases.len();
    let names: Vec<_> = cases.iter().map(|case| parsed(case).case.name.to_string()).collect();
    cases.retain(|case| focus.iter().any(|focus| focus.is_match(&focus_text(parsed(case)))));
    if cases.is_empty() {
        let names = || names.iter().map(String::as_str);
        let nearest = focus.iter().find_map(|focus| nearest(focus.as_str(), names()));
        let nearest = nearest.map(str::to_owned);
        return Err(SelectError::NoFocusMatch { focus: display_all(focus), count, nearest });
    }
    Ok(())
}

fn display_all(expressions: &[Regex]) -> Vec<String> {
    expressions.iter().map(|expression| format!("/{expression}/")).collect()
}

/// Returns the text that `--focus` and `--skip` match.
fn focus_text(case: &ParsedCase) -> String {
    format!("{} {}", case.id(), case.case.about)
}

fn refers_to(case: &ParsedCase, issue: &Upstream) -> bool {
    let bugs = case.case.known_bugs.iter().filter_map(|bug| bug.upstream.as_ref());
    case.case.upstream.iter().chain(bugs).any(|upstream| upstream == issue)
}

fn find_by_names<C: Borrow<ParsedCase>>(
    source: &Source,
    names: &[String],
    load: fn(CaseFiles) -> Result<Vec<Arc<C>>, LoadErrors>,
) -> Result<Vec<Arc<C>>, SelectError> {
    let (mut paths, names_only): (Vec<_>, Vec<_>) = names.iter().partition(|name| is_path(name));
    // Do not load the source if only paths are given: other files may be broken.
    let known = if paths.is_empty() || !names_only.is_empty() {
        load(CaseFiles::read_named(source, &names_only))?
    } else {
        vec![]
    };
    if names.is_empty() {
        return Ok(known);
    }
    let mut named = vec![];
    for name in names_only {
        let found = find_by_name(&known, name);
        if !found.is_empty() {
            named.extend(found);
        } else if Path::new(name).exists() {
            paths.push(name);
        } else {
            return Err(no_such_name(source, &known, name));
        }
    }
    let mut selected = load(CaseFiles::read_paths(&paths))?;
    selected.extend(named);
    let mut seen = BTreeSet::new();
    selected.retain(|case| seen.insert(parsed(case).origin.canonical()));
    let duplicates = duplicate_names(&selected);
    if !duplicates.is_empty() {
        return Err(LoadErrors(duplicates).into());
    }
    selected.sort_by_key(sort_key);
    Ok(selected)
}

fn find_by_name<C: Borrow<ParsedCase>>(known: &[Arc<C>], name: &str) -> Vec<Arc<C>> {
    let is_named = |case: &ParsedCase| is_named(&case.suite, case.case.name.as_str(), name);
    known.iter().filter(|case| is_named(parsed(case))).cloned().collect()
}

fn no_such_name<C: Borrow<ParsedCase>>(source: &Source, known: &[Arc<C>], name: &str) -> SelectError {
    let known = || known.iter().map(parsed);
    let suites: BTreeSet<_> = known().map(|case| case.suite.clone()).collect();
    let ids = known().flat_map(|case| [case.case.name.to_string(), case.id()]);
    let names: Vec<_> = suites.iter().cloned().chain(ids).collect();
    SelectError::NoSuchName {
        name: name.to_owned(),
        place: source.to_string(),
        suites: suites.into_iter().collect(),
        nearest: nearest(name, names.iter().map(String::as_str)).map(str::to_owned),
    }
}

/// Returns whether a name can only be a path.
fn is_path(name: &str) -> bool {
    name == STDIN
        || [".yaml", ".yml", "/"].iter().any(|end| name.ends_with(end))
        || name.starts_with(['.', '/'])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::BuiltInCase;
    use crate::fixtures::built_in;

    const FILES: &[BuiltInCase] = &[
        built_in("message/sidecars-are-named.yaml", ONE),
        built_in("message/requests-decide.yaml", TWO),
        built_in("limits/emptydir-size.yaml", THREE),
    ];
    const ONE: &str = "{name: sidecars-are-named, about: It names sidecars., labels: [Slow, 'NodeFeature:Eviction'], \
        upstream: [a/b#7], pods: [{metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}], expect: {evicted: []}}";
    const TWO: &str = "{name: requests-decide, about: It compares., labels: [Slow], \
        pods: [{metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}], expect: {evicted: []}, \
        known-bugs: [{kubelet: '<1.32', upstream: a/b#8, evicted: [], about: It does not.}]}";
    const THREE: &str = "{name: emptydir-size, about: It has a limit., labels: [Feature:Eviction], \
        pods: [{metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}], expect: {evicted: []}}";

    fn selected(selection: &Selection) -> Result<String, String> {
        let cases = select(&Source::BuiltIn(FILES), selection).map_err(|error| error.to_string())?;
        Ok(cases.iter().map(|case| case.case.name.to_string()).collect::<Vec<_>>().join(" "))
    }

    /// Builds a selection from names, a label filter, focus and skip.
    fn selection(names: &str, filter: &str, focus: &str, skip: &str) -> Selection {
        let regexes = |text: &str| text.split_whitespace().map(|one| Regex::new(one).unwrap()).collect();
        Selection {
            names: names.split_whitespace().map(str::to_owned).collect(),
            label_filter: Some(filter)
                .filter(|filter| !filter.is_empty())
                .map(|filter| filter.parse().unwrap()),
            focus: regexes(focus),
            skip: regexes(skip),
            upstream: vec![],
            shard: None,
        }
    }

    #[test]
    fn selects_by_name_label_focus_and_skip() {
        let rows = [
            (selection("", "", "", ""), "emptydir-size requests-decide sidecars-are-named"),
            (selection("message", "", "", ""), "requests-decide sidecars-are-named"),
            (selection("limits requests-decide", "", "", ""), "emptydir-size requests-decide"),
            (selection("message/requests-decide message", "", "", ""), "requests-decide sidecars-are-named"),
            (selection("", "NodeFeature:Eviction", "", ""), "emptydir-size sidecars-are-named"),
            (selection("", "Feature:Eviction && Slow", "", ""), "sidecars-are-named"),
            (selection("", "", "sidecars-are-named", ""), "sidecars-are-named"),
            (selection("", "", "^limits/ compares", ""), "emptydir-size requests-decide"),
            (selection("message", "Slow", "named|decide", "sidecars"), "requests-decide"),
        ];
        for (criteria, expected) in rows {
            assert_eq!(selected(&criteria).as_deref(), Ok(expected), "{criteria:?}");
        }
    }

    #[test]
    fn selects_by_upstream_reference() {
        let about = |issues: &[&str]| Selection {
            upstream: issues.iter().map(|issue| issue.parse().unwrap()).collect(),
            ..Selection::default()
        };
        assert_eq!(selected(&about(&["a/b#7"])).as_deref(), Ok("sidecars-are-named"));
        assert_eq!(selected(&about(&["a/b#8", "a/c#7"])).as_deref(), Ok("requests-decide"));
    }

    #[test]
    fn empty_selections_list_the_choices() {
        let rows = [
            selection("mesage", "", "", ""),
            selection("message/side", "", "", ""),
            selection("xyz", "", "", ""),
            selection("message", "Feature:Sidecar", "", ""),
            selection("", "", "sidecars-are-nmaed", ""),
            selection("", "Slow", "zzz yyy", ""),
            selection("limits", "", "", "."),
            Selection { upstream: vec!["a/b#9".parse().unwrap()], ..Selection::default() },
            Selection { shard: "3/3".parse().ok(), ..selection("message", "", "", "") },
        ];
        let errors: Vec<_> = rows.iter().map(|row| selected(row).unwrap_err()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn selects_each_file_once() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        for BuiltInCase { path, text, .. } in FILES {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        }
        let select =
            |names: &[String]| selected(&Selection { names: names.to_vec(), ..Selection::default() });
        let file = path("message/requests-decide.yaml");
        let duplicate = path("message/../message/requests-decide.yaml");
        assert_eq!(select(&[file.clone(), duplicate]).as_deref(), Ok("requests-decide"));
        assert_eq!(select(&[file.clone(), path("limits")]).as_deref(), Ok("emptydir-size requests-decide"));
        // A built-in case with the same name is another file.
        let both = select(&["message".to_owned(), file]).unwrap_err();
        assert!(both.starts_with("two cases are named `requests-decide`"), "{both}");
        // Broken files that are not selected are ignored.
        fs::write(path("limits/broken.yaml"), "?").unwrap();
        assert_eq!(select(&[path("message/")]).as_deref(), Ok("requests-decide sidecars-are-named"));
        let broken = select(&[path("limits/")]).unwrap_err();
        assert!(broken.contains("limits/broken.yaml") && broken.contains("1 problem in 1 file"), "{broken}");
    }

    /// The invalid files matter only if they are selected.
    #[test]
    fn reads_only_the_named_files() {
        const WITH_INVALID: &[BuiltInCase] = &[
            FILES[0],
            built_in("message/invalid.yaml", "?"),
            FILES[2],
            built_in("limits/sidecars.yaml", "?"),
        ];
        let by_names = |names: &[&str]| Selection {
            names: names.iter().copied().map(str::to_owned).collect(),
            ..Selection::default()
        };
        let select = |names: &[&str]| {
            let cases = select(&Source::BuiltIn(WITH_INVALID), &by_names(names));
            cases.map(|cases| cases.len()).map_err(|error| error.to_string())
        };
        assert_eq!(select(&["sidecars-are-named", "limits/emptydir-size"]), Ok(2));
        for names in [&["message"][..], &[], &["sidecars-are-named", "unknown"], &["limits/sidecars"]] {
            let error = select(names).unwrap_err();
            assert!(error.contains("in 1 file") || error.contains("in 2 files"), "{names:?}: {error}");
        }
    }

    /// The tests run in the folder of this crate, which has a folder `tests`.
    #[test]
    fn a_suite_comes_before_a_folder_of_its_name() {
        const SUITE: &[BuiltInCase] = &[built_in("tests/emptydir-size.yaml", THREE)];
        let by_name = |name: &str| Selection { names: vec![name.to_owned()], ..Selection::default() };
        assert_eq!(select(&Source::BuiltIn(SUITE), &by_name("tests")).unwrap().len(), 1);
        let no_case = select(&Source::BuiltIn(SUITE), &by_name("tests/")).unwrap_err().to_string();
        assert!(no_case.contains("no suites found"), "{no_case}");
    }
}
