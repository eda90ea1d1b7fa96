//! Eviction messages in texts: between other words, shortened, wrapped, or of old kubelets.

use evictlab_rules::message::{EvictionMessage, MessageParseError};

/// Beginnings of eviction messages.
const MESSAGE_STARTS: [&str; 6] = [
    "The node was low on resource: ",
    "Usage of EmptyDir volume ",
    "Pod ephemeral local storage usage exceeds ",
    "Container ",
    "Pod was rejected: The node had condition: ",
    "The node had condition: ",
];

/// Extracts the eviction message from a text.
pub(crate) fn message(text: &str) -> Result<String, MessageParseError> {
    let from = MESSAGE_STARTS.iter().filter_map(|start| text.find(start)).min().unwrap_or(0);
    let found = parse_message(&text[from..]);
    let (Err(error), true) = (&found, from > 0) else { return found };
    // A value in quotes, as in `msg="…" level=info`.
    let quote = text[..from].chars().next_back().filter(|c| matches!(c, '"' | '\''));
    let value = quote.and_then(|quote| quoted_value(&text[from..], quote));
    value.and_then(|value| parse_message(&value).ok()).ok_or_else(|| error.clone())
}

/// Returns the text up to an unescaped quote, without escapes.
fn quoted_value(text: &str, quote: char) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '\\' => value.extend(characters.next()),
            c if c == quote => return Some(value),
            c => value.push(c),
        }
    }
}

/// Ends of a message that a table or a chat shortened.
const ELLIPSES: [&str; 3] = ["…", "...", "[truncated]"];

/// Parses a text that begins with an eviction message; of a shortened one, its complete sentences.
fn parse_message(text: &str) -> Result<String, MessageParseError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // Messages end with a full stop and a space. Copying loses the space and adds quotes.
    let text =
        format!("{} ", words.join(" ").trim_end_matches(['"', '\'', '`', '*', '_', ')', '>', '|', '”', '’']));
    let text = modernize(&text);
    match text.parse::<EvictionMessage>() {
        Ok(_) => Ok(text),
        Err(error) if error.offset > 0 && text[..error.offset].parse::<EvictionMessage>().is_ok() => {
            Ok(text[..error.offset].to_owned())
        }
        Err(error) => {
            let is_shortened = ELLIPSES.iter().any(|end| text.contains(end));
            let ends = text.rmatch_indices(". ").map(|(at, _)| &text[..at + 2]);
            let complete = ends.filter(|_| is_shortened).find(|part| part.parse::<EvictionMessage>().is_ok());
            complete.map(str::to_owned).ok_or(error)
        }
    }
}

/// Converts a message of kubelets before 1.26 to the form of newer ones. An old message:
/// `Container a was using 2Gi, which exceeds its request of 1Gi. `
pub(crate) fn modernize(text: &str) -> String {
    let resource =
        text.strip_prefix(MESSAGE_STARTS[0]).and_then(|rest| rest.split(". ").next()).unwrap_or_default();
    let mut parts = text.split(", which exceeds its request of ");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (request, rest) = part.split_once(". ").unwrap_or((part.trim_end(), ""));
        all += &format!(", request is {request}, has larger consumption of {resource}. {rest}");
    }
    all
}
