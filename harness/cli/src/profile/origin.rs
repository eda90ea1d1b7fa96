//! The options of the running command that a profile states, for messages about them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use evictlab_case::{Problem, SourceSpan};

use super::settings::Setting;

/// Set once, before the command runs: clap's values do not have the place of their default.
static ORIGIN: OnceLock<Origin> = OnceLock::new();

struct Origin {
    /// The file of the profiles as the user opens it.
    file: String,
    /// True for each option that is a flag, by long name.
    options: BTreeMap<String, bool>,
    /// The values of options that are not flags, and their places in the file.
    values: Vec<(String, SourceSpan)>,
}

/// Stores the options that have their values from the profiles of this file.
pub(super) fn record<'a>(file: String, settings: impl Iterator<Item = &'a Setting>) {
    let (mut options, mut values) = (BTreeMap::new(), Vec::new());
    for setting in settings {
        options.insert(setting.long.clone(), setting.is_flag);
        if !setting.is_flag {
            // Errors quote versions in their canonical form.
            let is_bare = |value: &str| setting.long == "kubelet" && value.starts_with("1.");
            let quoted = |value: &String| if is_bare(value) { format!("v{value}") } else { value.clone() };
            values.extend(setting.values.iter().map(quoted).zip(setting.places.iter().cloned()));
        }
    }
    ORIGIN.get_or_init(|| Origin { file, options, values });
}

/// Returns the message of an error with the place of a value that it quotes, if a profile states
/// that value.
pub(crate) fn with_place(message: String) -> String {
    let values = ORIGIN.get().map(|origin| &origin.values[..]).unwrap_or_default();
    match values.iter().find(|(value, _)| quotes(&message, value)) {
        Some((_, place)) => Problem { message, spans: vec![place.clone()] }.to_string(),
        None => message,
    }
}

/// Returns whether a text has a value as a word of its own. Numbers are not distinctive.
fn quotes(text: &str, value: &str) -> bool {
    let is_distinctive = value.contains(|c: char| c.is_ascii_alphabetic()) && value.len() > 2;
    let continues = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    is_distinctive
        && text.match_indices(value).any(|(start, _)| {
            let after = &text[start + value.len()..];
            let is_longer = after.strip_prefix('.').unwrap_or(after).starts_with(continues);
            !text[..start].ends_with(continues) && !is_longer
        })
}

/// Returns how to leave out an option, such as `--keep`, that a profile states. `None` for an
/// option from elsewhere, such as the command line.
pub(crate) fn removal(option: &str) -> Option<String> {
    let Origin { file, options, .. } = ORIGIN.get()?;
    let long = option.strip_prefix("--")?;
    Some(if *options.get(long)? {
        format!("{file} states {long}: unset it with --no-{long}")
    } else {
        format!("{file} states {long}: remove it there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_as_a_word() {
        let text = "failed to model kubelet v1.99: the embedded cluster supports v1.27 to v1.37.";
        for (value, is_quoted) in
            [("v1.99", true), ("v1.37", true), ("v1.9", false), ("1.99", false), ("v1", false), ("99", false)]
        {
            assert_eq!(quotes(text, value), is_quoted, "{value}");
        }
    }
}
