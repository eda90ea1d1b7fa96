//! Which cases a command is about.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;

use super::Shard;
use super::label_filter::LabelFilter;
use crate::case::{LoadErrors, LoadedCase, Source, Upstream, load, load_paths, named_twice, nearest};

/// What was asked for. Every part narrows what the parts before it left.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Suites, cases, `suite/case`, case files and folders of them; none means every case of the source.
    pub names: Vec<String>,
    /// By the labels.
    pub label_filter: Option<LabelFilter>,
    /// Any of these is found in `suite/case about`.
    pub focus: Vec<Regex>,
    /// None of these is found in `suite/case about`.
    pub skip: Vec<Regex>,
    /// Any of these is named by the case, as what it is about or as a known bug.
    pub upstream: Vec<Upstream>,
    /// Of what is left, this part.
    pub shard: Option<Shard>,
}

/// Why there is nothing to run. Each says what there was to choose from.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SelectError {
    /// The case files do not load.
    #[error("{0}")]
    Load(#[from] LoadErrors),
    /// A name leads nowhere.
    #[error(
        "no suite, case or file is named `{name}`: {}",
        .nearest.as_ref().map_or_else(|| format!("the suites are {} (from {place})", .suites.join(", ")),
            |near| format!("did you mean `{near}`?"))
    )]
    NoSuchName {
        /// The name.
        name: String,
        /// Where it was looked for.
        place: String,
        /// The suites there.
        suites: Vec<String>,
        /// The name that may have been meant.
        nearest: Option<String>,
    },
    /// The label filter leaves nothing.
    #[error("no case is selected: the label filter `{filter}` leaves none of {count}, whose labels are {}", .labels.join(", "))]
    NoLabel {
        /// The filter.
        filter: String,
        /// How many cases there were.
        count: usize,
        /// Their labels.
        labels: Vec<String>,
    },
    /// The focus leaves nothing.
    #[error(
        "no case is selected: none of {count} has {} in its \"suite/case about\"{}",
        .focus.join(" or "),
        .nearest.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default()
    )]
    NoFocus {
        /// The expressions.
        focus: Vec<String>,
        /// How many cases there were.
        count: usize,
        /// The case that may have been meant.
        nearest: Option<String>,
    },
    /// Everything is skipped.
    #[error("no case is selected: {} skips all of {count}", .skip.join(" or "))]
    AllSkipped {
        /// The expressions.
        skip: Vec<String>,
        /// How many cases there were.
        count: usize,
    },
    /// Nobody is about the issue.
    #[error("no case is selected: none of {count} names {}; `evictlab list --json` has what each names", .upstream.join(" or "))]
    NoUpstream {
        /// The issues.
        upstream: Vec<String>,
        /// How many cases there were.
        count: usize,
    },
    /// There are more shards than cases.
    #[error("shard {shard} has no case: the selection has {count}, so split it into {count} shards at most")]
    EmptyShard {
        /// The shard.
        shard: Shard,
        /// How many cases there were.
        count: usize,
    },
}

/// The cases that were asked for, ordered by suite and name. Never none.
pub fn select(source: &Source, selection: &Selection) -> Result<Vec<Arc<LoadedCase>>, SelectError> {
    let mut cases = by_name(source, &selection.names)?;
    let count = cases.len();
    if let Some(filter) = &selection.label_filter {
        let labels: BTreeSet<String> = cases.iter().flat_map(|case| case.case.labels.clone()).collect();
        cases.retain(|case| filter.matches(&case.case.labels));
        if cases.is_empty() {
            let labels = labels.into_iter().collect();
            return Err(SelectError::NoLabel { filter: filter.to_string(), count, labels });
        }
    }
    let texts = |all: &[Regex]| all.iter().map(|one| format!("/{one}/")).collect();
    let count = cases.len();
    if !selection.focus.is_empty() {
        let names: Vec<_> = cases.iter().map(|case| case.case.name.to_string()).collect();
        cases.retain(|case| selection.focus.iter().any(|focus| focus.is_match(&line_of(case))));
        if cases.is_empty() {
            let names = || names.iter().map(String::as_str);
            let near = selection.focus.iter().find_map(|focus| nearest(focus.as_str(), names()));
            let nearest = near.map(str::to_owned);
            return Err(SelectError::NoFocus { focus: texts(&selection.focus), count, nearest });
        }
    }
    let count = cases.len();
    cases.retain(|case| !selection.skip.iter().any(|skip| skip.is_match(&line_of(case))));
    if cases.is_empty() {
        return Err(SelectError::AllSkipped { skip: texts(&selection.skip), count });
    }
    let count = cases.len();
    if !selection.upstream.is_empty() {
        cases.retain(|case| selection.upstream.iter().any(|upstream| names_upstream(case, upstream)));
        if cases.is_empty() {
            let upstream = selection.upstream.iter().map(ToString::to_string).collect();
            return Err(SelectError::NoUpstream { upstream, count });
        }
    }
    let Some(shard) = selection.shard else { return Ok(cases) };
    let count = cases.len();
    let cases = shard.of(cases);
    if cases.is_empty() {
        return Err(SelectError::EmptyShard { shard, count });
    }
    Ok(cases)
}

/// What `--focus` and `--skip` look at.
fn line_of(case: &LoadedCase) -> String {
    format!("{} {}", case.id(), case.case.about)
}

fn names_upstream(case: &LoadedCase, wanted: &Upstream) -> bool {
    let bugs = case.case.known_bugs.iter().filter_map(|bug| bug.upstream.as_ref());
    case.case.upstream.iter().chain(bugs).any(|upstream| upstream == wanted)
}

fn by_name(source: &Source, names: &[String]) -> Result<Vec<Arc<LoadedCase>>, SelectError> {
    let (paths, names_only): (Vec<_>, Vec<_>) = names.iter().partition(|name| is_path(name));
    // A broken file elsewhere is no reason not to run the one that was asked for.
    let known = if paths.is_empty() || !names_only.is_empty() { load(source)? } else { vec![] };
    if names.is_empty() {
        return Ok(known);
    }
    let mut selected = load_paths(&paths)?;
    for name in names_only {
        selected.extend(by_one_name(source, &known, name)?);
    }
    let mut seen = BTreeSet::new();
    selected.retain(|case| seen.insert(whole_path(case)));
    let twice = named_twice(&selected);
    if !twice.is_empty() {
        return Err(LoadErrors(twice).into());
    }
    selected.sort_by_key(|case| (case.suite.clone(), case.case.name.clone()));
    Ok(selected)
}

fn by_one_name(
    source: &Source,
    known: &[Arc<LoadedCase>],
    name: &str,
) -> Result<Vec<Arc<LoadedCase>>, SelectError> {
    let named = |case: &&Arc<LoadedCase>| case.suite == name || case.case.name == *name || case.id() == name;
    let found: Vec<_> = known.iter().filter(named).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    if Path::new(name).exists() {
        return Ok(load_paths(&[name])?);
    }
    let suites: BTreeSet<_> = known.iter().map(|case| case.suite.clone()).collect();
    let ids = known.iter().flat_map(|case| [case.case.name.to_string(), case.id()]);
    let names: Vec<_> = suites.iter().cloned().chain(ids).collect();
    Err(SelectError::NoSuchName {
        name: name.to_owned(),
        place: source.to_string(),
        suites: suites.into_iter().collect(),
        nearest: nearest(name, names.iter().map(String::as_str)).map(str::to_owned),
    })
}

/// What can only be meant as a path.
fn is_path(name: &str) -> bool {
    [".yaml", ".yml", "/"].iter().any(|end| name.ends_with(end)) || name.starts_with(['.', '/'])
}

/// The same for one file, however it was named.
fn whole_path(case: &LoadedCase) -> PathBuf {
    fs::canonicalize(&case.shown).unwrap_or_else(|_| PathBuf::from(&case.shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("message/sidecars-are-named.yaml", ONE),
        ("message/requests-decide.yaml", TWO),
        ("limits/emptydir-size.yaml", THREE),
    ];
    const ONE: &str = "{name: sidecars-are-named, about: It names sidecars., labels: [Slow, 'NodeFeature:Eviction'], \
        upstream: [a/b#7], pods: [{metadata: {name: a}, spec: {containers: [{name: c}]}}], expect: {}}";
    const TWO: &str = "{name: requests-decide, about: It compares., labels: [Slow], \
        pods: [{metadata: {name: a}, spec: {containers: [{name: c}]}}], expect: {}, \
        known-bugs: [{kubelet: '<1.32', upstream: a/b#8, evicted: [], about: It does not.}]}";
    const THREE: &str = "{name: emptydir-size, about: It has a limit., labels: [Feature:Eviction], \
        pods: [{metadata: {name: a}, spec: {containers: [{name: c}]}}], expect: {}}";

    fn selected(selection: &Selection) -> Result<String, String> {
        let cases = select(&Source::BuiltIn(FILES), selection).map_err(|error| error.to_string())?;
        Ok(cases.iter().map(|case| case.case.name.to_string()).collect::<Vec<_>>().join(" "))
    }

    /// Names, label filter, focus, skip.
    fn row(names: &str, filter: &str, focus: &str, skip: &str) -> Selection {
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
            (row("", "", "", ""), "emptydir-size requests-decide sidecars-are-named"),
            (row("message", "", "", ""), "requests-decide sidecars-are-named"),
            (row("limits requests-decide", "", "", ""), "emptydir-size requests-decide"),
            (row("message/requests-decide message", "", "", ""), "requests-decide sidecars-are-named"),
            (row("", "NodeFeature:Eviction", "", ""), "emptydir-size sidecars-are-named"),
            (row("", "Feature:Eviction && Slow", "", ""), "sidecars-are-named"),
            (row("", "", "sidecars-are-named", ""), "sidecars-are-named"),
            (row("", "", "^limits/ compares", ""), "emptydir-size requests-decide"),
            (row("message", "Slow", "named|decide", "sidecars"), "requests-decide"),
        ];
        for (selection, expected) in rows {
            assert_eq!(selected(&selection).as_deref(), Ok(expected), "{selection:?}");
        }
    }

    #[test]
    fn selects_by_what_a_case_is_about_upstream() {
        let about = |issues: &[&str]| Selection {
            upstream: issues.iter().map(|issue| issue.parse().unwrap()).collect(),
            ..Selection::default()
        };
        assert_eq!(selected(&about(&["a/b#7"])).as_deref(), Ok("sidecars-are-named"));
        assert_eq!(selected(&about(&["a/b#8", "a/c#7"])).as_deref(), Ok("requests-decide"));
    }

    #[test]
    fn nothing_selected_says_what_there_was() {
        let rows = [
            row("mesage", "", "", ""),
            row("message/side", "", "", ""),
            row("xyz", "", "", ""),
            row("message", "Feature:Sidecar", "", ""),
            row("", "", "sidecars-are-nmaed", ""),
            row("", "Slow", "zzz yyy", ""),
            row("limits", "", "", "."),
            Selection { upstream: vec!["a/b#9".parse().unwrap()], ..Selection::default() },
            Selection { shard: "3/3".parse().ok(), ..row("message", "", "", "") },
        ];
        let errors: Vec<_> = rows.iter().map(|row| selected(row).unwrap_err()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn files_and_folders_are_selected_once() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        for (file, text) in FILES {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            fs::write(root.path().join(file), text).unwrap();
        }
        let select =
            |names: &[String]| selected(&Selection { names: names.to_vec(), ..Selection::default() });
        let file = path("message/requests-decide.yaml");
        let twice = path("message/../message/requests-decide.yaml");
        assert_eq!(select(&[file.clone(), twice]).as_deref(), Ok("requests-decide"));
        assert_eq!(select(&[file.clone(), path("limits")]).as_deref(), Ok("emptydir-size requests-decide"));
        // The built-in case of that name is another file.
        let both = select(&["message".to_owned(), file]).unwrap_err();
        assert!(both.starts_with("two cases are named `requests-decide`"), "{both}");
        // Broken files elsewhere are left alone.
        fs::write(path("limits/broken.yaml"), "?").unwrap();
        assert!(select(&[path("message/")]).is_ok() && select(&[path("limits/")]).is_err());
    }
}
