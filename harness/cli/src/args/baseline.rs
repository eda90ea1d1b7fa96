//! Arguments that compare verdicts with a baseline, or write one.

use std::path::{Path, PathBuf};

use evictlab_report::baseline::{self, Baseline};

use crate::failure::Failure;

/// Name of the built-in baseline.
const BUILT_IN: &str = "built-in";

/// Expected verdicts of the built-in cases.
pub(crate) const BUILT_IN_BASELINE: &str = include_str!("../../files/baseline.json");

/// Heading of options for the files of a run.
pub(crate) const RESULTS: &str = "Results";

/// The baseline to compare with, and the one to write.
#[derive(clap::Args)]
#[command(next_help_heading = RESULTS)]
pub(crate) struct BaselineArgs {
    /// Compare the verdicts with this file, report changes, and exit with 5 if there are any;
    /// `built-in` is the baseline of evictlab. Without FILE, results/baseline.json, or the built-in
    /// one if that file does not exist
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = baseline::DEFAULT)]
    baseline: Option<PathBuf>,
    /// Write the verdicts to this file, as the baseline of later runs
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = baseline::DEFAULT)]
    pub(crate) write_baseline: Option<PathBuf>,
}

impl BaselineArgs {
    /// Rejects a baseline that the command line does not mean, or that could not be written at the
    /// end. `names` are the arguments that name cases.
    pub(crate) fn check<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
        let file = names.find(|name| name.ends_with(".json"));
        if let (Some(file), true) = (file, self.baseline.is_some() || self.write_baseline.is_some()) {
            return Err(Failure::bad_input(format!(
                "failed to read case {file}: it is not a case\nhelp: a baseline needs an equals sign: --baseline={file}"
            )));
        }
        let parent = self.write_baseline.as_ref().and_then(|path| path.parent());
        match parent.filter(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) {
            Some(dir) => Err(Failure::bad_input(format!(
                "failed to write a baseline to {}: the directory does not exist\nhelp: create it, or name another file",
                dir.display()
            ))
            .of_option("write-baseline")),
            None => Ok(()),
        }
    }

    /// Reads the baseline to compare with. The default one is built in, for runs outside of the
    /// source tree.
    pub(crate) fn read(&self) -> Result<Option<Baseline>, Failure> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let is_default = path == Path::new(baseline::DEFAULT) && !path.exists();
        if is_default || path == Path::new(BUILT_IN) {
            return serde_json::from_str(BUILT_IN_BASELINE).map(Some).map_err(Failure::infrastructure);
        }
        Baseline::read(path).map(Some).map_err(|error| Failure::bad_input(error).of_option("baseline"))
    }
}
