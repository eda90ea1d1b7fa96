//! Arguments that select cases.

use std::path::PathBuf;

use clap::builder::{Resettable, Str};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use evictlab_case::select::{LabelFilter, Selection, Shard};
use evictlab_case::{Source, Upstream, ValueError};
use regex::Regex;

use crate::args::candidates;
use crate::args::values::option_args;

/// Heading of these options in the help.
pub(crate) const SELECTION: &str = "Selection";

/// The source of the suites.
#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// Directory of the suites [default: `./cases` if it contains case.schema.json, else the
    /// built-in suites]
    #[arg(long, value_name = "DIR", env = "EVICTLAB_CASES")]
    cases: Option<PathBuf>,
}

impl SourceArgs {
    /// Returns the arguments from the command line or the environment.
    pub(crate) fn words(&self) -> Vec<String> {
        let dir = self.cases.iter().map(|dir| dir.display().to_string());
        dir.flat_map(|dir| option_args("--cases", &dir)).collect()
    }

    /// Returns the source of the suites.
    pub(crate) fn source(&self) -> Source {
        Source::find(self.cases.clone(), cases::FILES)
    }
}

/// Parses an issue or pull request. A number alone is one of kubernetes/kubernetes.
fn upstream(text: &str) -> Result<Upstream, ValueError> {
    match text.strip_prefix('#').unwrap_or(text).parse::<u64>() {
        Ok(number) => format!("kubernetes/kubernetes#{number}").parse(),
        Err(_) => text.parse(),
    }
}

/// The selected cases.
#[derive(clap::Args)]
#[command(next_help_heading = SELECTION)]
pub(crate) struct SelectionArgs {
    /// Suites, cases, `suite/case`, case files, directories, or - for a case from standard input
    /// [default: all cases]
    #[arg(value_name = "SELECTION", help_heading = Resettable::<Str>::Reset, add = ArgValueCompleter::new(candidates::complete_selection))]
    names: Vec<String>,
    /// Select only cases whose labels match a Ginkgo label filter, such as
    /// `Feature:Eviction && !(Slow || Flaky)`
    #[arg(long, short, value_name = "FILTER", add = ArgValueCandidates::new(candidates::labels))]
    label_filter: Option<LabelFilter>,
    /// Select only cases with a match in "suite/case about" (repeatable: any of them)
    #[arg(long, short, value_name = "REGEX")]
    focus: Vec<Regex>,
    /// Skip cases with a match in "suite/case about" (repeatable: any of them)
    #[arg(long, value_name = "REGEX")]
    skip: Vec<Regex>,
    /// Select only cases that name this issue or pull request, such as
    /// kubernetes/kubernetes#124938, or 124938 of this repository (repeatable: any of them)
    #[arg(long, value_name = "ISSUE", value_parser = upstream, add = ArgValueCandidates::new(candidates::upstreams))]
    upstream: Vec<Upstream>,
    /// Run only this part of the selected cases, such as 2/3 for the second of three parts; for
    /// several machines
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    source: SourceArgs,
}

impl SelectionArgs {
    /// Returns the source of the suites.
    pub(crate) fn source(&self) -> Source {
        self.source.source()
    }

    /// Returns the suites, cases and files.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the arguments from the command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let Self { names, label_filter, focus, skip, upstream, shard, source } = self;
        let filter = label_filter.iter().map(|filter| option_args("--label-filter", &filter.to_string()));
        let focus = focus.iter().map(|regex| option_args("--focus", regex.as_str()));
        let skip = skip.iter().map(|regex| option_args("--skip", regex.as_str()));
        let upstream = upstream.iter().map(|upstream| option_args("--upstream", &upstream.to_string()));
        let shard = shard.iter().map(|shard| option_args("--shard", &shard.to_string()));
        let options = filter.chain(focus).chain(skip).chain(upstream).chain(shard).flatten();
        names.iter().cloned().chain(source.words()).chain(options).collect()
    }

    /// Returns the first words of a subcommand of evictlab with this selection.
    pub(crate) fn command(&self, subcommand: &str) -> Vec<String> {
        ["evictlab", subcommand].into_iter().map(str::to_owned).chain(self.words()).collect()
    }

    /// Returns whether any argument restricts the selection.
    pub(crate) fn is_restricted(&self) -> bool {
        let Self { names, label_filter, focus, skip, upstream, shard, source: _ } = self;
        let lists = [names.is_empty(), focus.is_empty(), skip.is_empty(), upstream.is_empty()];
        !lists.iter().all(|empty| *empty) || label_filter.is_some() || shard.is_some()
    }

    /// Selects these cases instead of those that were named.
    pub(crate) fn set_names(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// Returns the shard of the selection.
    pub(crate) fn shard(&self) -> Option<Shard> {
        self.shard
    }

    /// Returns the selection.
    pub(crate) fn selection(&self) -> Selection {
        let Self { names, label_filter, focus, skip, upstream, shard, source: _ } = self;
        Selection {
            names: names.clone(),
            label_filter: label_filter.clone(),
            focus: focus.clone(),
            skip: skip.clone(),
            upstream: upstream.clone(),
            shard: *shard,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches};

    use super::*;

    fn parse(words: &[String]) -> Result<SelectionArgs, clap::Error> {
        let command = SelectionArgs::augment_args(Command::new("run").no_binary_name(true));
        SelectionArgs::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    #[test]
    fn an_issue_of_kubernetes_is_named_by_its_number() {
        for text in ["124938", "#124938", "kubernetes/kubernetes#124938"] {
            let words = parse(&["--upstream", text].map(str::to_owned)).unwrap().words();
            assert_eq!(words, ["--upstream", "kubernetes/kubernetes#124938"], "{text}");
        }
        assert!(parse(&["--upstream", "0"].map(str::to_owned)).is_err());
    }

    #[test]
    fn arguments_can_be_parsed_again() {
        let stated =
            ["limits", "--cases", "./mine", "--focus=-x", "--focus", "y", "--skip=--z", "--shard", "1/2"];
        let stated = stated.map(str::to_owned).to_vec();
        let words = parse(&stated).unwrap().words();
        assert_eq!(words, stated);
        assert_eq!(parse(&words).unwrap().words(), stated);
    }
}
