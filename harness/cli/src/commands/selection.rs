//! The arguments of every command that is about some of the cases.

use std::path::PathBuf;

use evictlab_runner::case::{Source, Upstream};
use evictlab_runner::select::{LabelFilter, Selection, Shard};
use regex::Regex;

/// Where the suites come from.
#[derive(clap::Args)]
pub struct SourceArgs {
    /// Take the suites from this folder instead of `cases/` here (where it has a case.schema.json) or, else, of the
    /// built-in ones
    #[arg(long, value_name = "DIR", env = "EVICTLAB_CASES")]
    cases: Option<PathBuf>,
}

impl SourceArgs {
    /// The source that they mean.
    pub fn source(&self) -> Source {
        Source::find(self.cases.clone(), cases::FILES)
    }
}

/// Which cases.
#[derive(clap::Args)]
pub struct SelectionArgs {
    /// Suites, cases, `suite/case`, case files or folders of them; all cases if none is given
    #[arg(value_name = "SELECTION")]
    names: Vec<String>,
    /// Only cases whose labels match, in Ginkgo's language: `Feature:Eviction && !(Slow || Flaky)`
    #[arg(long, value_name = "FILTER")]
    label_filter: Option<LabelFilter>,
    /// Only cases with a match in "suite/case about" (may be given again: any of them)
    #[arg(long, value_name = "REGEX")]
    focus: Vec<Regex>,
    /// No cases with a match in "suite/case about" (may be given again: none of them)
    #[arg(long, value_name = "REGEX")]
    skip: Vec<Regex>,
    /// Only cases that name this issue or pull request, such as kubernetes/kubernetes#124938 (may be given again: any of them)
    #[arg(long, value_name = "ISSUE")]
    upstream: Vec<Upstream>,
    /// Only a part of the selected cases, such as 2/3 for the second of three: all parts together are the selection, on as many machines
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    source: SourceArgs,
}

impl SelectionArgs {
    /// Where to select from.
    pub fn source(&self) -> Source {
        self.source.source()
    }

    /// The arguments as they were given.
    pub fn words(&self) -> Vec<String> {
        let Self { names, label_filter, focus, skip, upstream, shard, source } = self;
        let named = |name: &'static str, value: String| [name.to_owned(), value];
        let cases = source.cases.iter().map(|dir| named("--cases", dir.display().to_string()));
        let filter = label_filter.iter().map(|filter| named("--label-filter", filter.to_string()));
        let focus = focus.iter().map(|regex| named("--focus", regex.to_string()));
        let skip = skip.iter().map(|regex| named("--skip", regex.to_string()));
        let upstream = upstream.iter().map(|upstream| named("--upstream", upstream.to_string()));
        let shard = shard.iter().map(|shard| named("--shard", shard.to_string()));
        let options = cases.chain(filter).chain(focus).chain(skip).chain(upstream).chain(shard).flatten();
        names.iter().cloned().chain(options).collect()
    }

    /// Whether anything narrows the selection.
    pub fn any(&self) -> bool {
        let Self { names, label_filter, focus, skip, upstream, shard, source: _ } = self;
        let lists = [names.is_empty(), focus.is_empty(), skip.is_empty(), upstream.is_empty()];
        !lists.iter().all(|empty| *empty) || label_filter.is_some() || shard.is_some()
    }

    /// What to select.
    pub fn selection(&self) -> Selection {
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
