//! Text of explanations.

/// Returns the text with its first letter in upper case.
pub(crate) fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", characters.as_str())
}
