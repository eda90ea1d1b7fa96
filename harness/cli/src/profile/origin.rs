//! The options of the running command that a profile states, for messages about them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use evictlab_case::SourceSpan;

use super::settings::Setting;

/// Set once, before the command runs: clap's values do not have the place of their default.
static ORIGIN: OnceLock<Origin> = OnceLock::new();

struct Origin {
    /// The file of the profiles as the user opens it.
    file: String,
    /// The options that have their values from the file, by long name.
    options: BTreeMap<String, StatedOption>,
}

/// An option that a profile states.
struct StatedOption {
    is_flag: bool,
    /// The values, with their places in the file.
    values: Vec<(String, SourceSpan)>,
}

/// Stores the options that have their values from the profiles of this file.
pub(super) fn record<'a>(file: String, settings: impl Iterator<Item = &'a Setting>) {
    let stated = |setting: &Setting| {
        let values = setting.values.iter().cloned().zip(setting.places.iter().cloned()).collect();
        (setting.long.clone(), StatedOption { is_flag: setting.is_flag, values })
    };
    let options = settings.map(stated).collect();
    ORIGIN.get_or_init(|| Origin { file, options });
}

/// Returns the place of a value of an option, by its long name, if a profile states that value.
/// Without a value, returns the place of the first one.
pub(crate) fn place(option: &str, value: Option<&str>) -> Option<SourceSpan> {
    let StatedOption { values, .. } = ORIGIN.get()?.options.get(option)?;
    // A value may be a list, such as `v1.31, v1.32`.
    let has =
        |stated: &str, value: &str| stated == value || stated.split(',').any(|part| part.trim() == value);
    let found = values.iter().find(|(stated, _)| value.is_none_or(|value| has(stated, value)));
    found.map(|(_, place)| place.clone())
}

/// Returns how to leave out an option, such as `--keep`, that a profile states. `None` for an
/// option from elsewhere, such as the command line.
pub(crate) fn removal(option: &str) -> Option<String> {
    let Origin { file, options, .. } = ORIGIN.get()?;
    let long = option.strip_prefix("--")?;
    Some(if options.get(long)?.is_flag {
        format!("{file} states {long}: unset it with --no-{long}")
    } else {
        format!("{file} states {long}: remove it there")
    })
}
