//! The options of the running command that a profile states, for messages about them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Set once, before the command runs: clap's values do not have the place of their default.
static ORIGIN: OnceLock<Origin> = OnceLock::new();

struct Origin {
    /// The file of the profiles as the user opens it.
    file: String,
    /// True for each option that is a flag, by long name.
    options: BTreeMap<String, bool>,
}

/// Stores the options that have their values from the profiles of this file.
pub(super) fn record(file: String, options: BTreeMap<String, bool>) {
    ORIGIN.get_or_init(|| Origin { file, options });
}

/// Returns how to leave out an option, such as `--keep`, that a profile states. `None` for an
/// option from elsewhere, such as the command line.
pub(crate) fn removal(option: &str) -> Option<String> {
    let Origin { file, options } = ORIGIN.get()?;
    let long = option.strip_prefix("--")?;
    Some(if *options.get(long)? {
        format!("{file} states {long}: unset it with --no-{long}")
    } else {
        format!("{file} states {long}: remove it there")
    })
}
