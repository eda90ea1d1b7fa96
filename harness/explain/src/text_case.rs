//! Messages that were copied in capitals or in small letters.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Beginnings of messages as the kubelet writes them.
const BEGINNINGS: &str = "The node was low on resource:|Usage of EmptyDir volume |Pod ephemeral local storage usage \
                          exceeds |Container \\S+ exceeded its local ephemeral storage limit ";
static EXACT: LazyLock<Regex> = LazyLock::new(|| Regex::new(BEGINNINGS).expect("the pattern is valid"));
/// The same in any case.
static ANY_CASE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("(?i){BEGINNINGS}")).expect("the pattern is valid"));
/// Words that a message has with capital letters, in lower case and as they are.
const WORDS: [(&str, &str); 6] = [
    ("the node was low on resource:", "The node was low on resource:"),
    ("threshold quantity:", "Threshold quantity:"),
    ("usage of emptydir volume ", "Usage of EmptyDir volume "),
    ("pod ephemeral local storage usage ", "Pod ephemeral local storage usage "),
    (". pod ", ". Pod "),
    ("container ", "Container "),
];
/// Units of amounts, in lower case.
static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?<digits>\d+)(?<unit>[kmgtpe])(?<binary>i?)\b").expect("the pattern is valid")
});

/// Returns a text whose messages in capitals or small letters are written as the kubelet writes
/// them. Names of objects have no capital letters.
pub(crate) fn without_capitals(text: String) -> String {
    let is_other = |text: &str| ANY_CASE.find_iter(text).any(|found| !EXACT.is_match(found.as_str()));
    if !is_other(&text) {
        return text;
    }
    let lines = text.lines().map(|line| if is_other(line) { restored(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

fn restored(line: &str) -> String {
    let mut line = line.to_lowercase();
    for (lower, word) in WORDS {
        line = line.replace(lower, word);
    }
    let unit = |found: &Captures<'_>| {
        // The only unit with a small letter of the kubelet is `k`: it prints no thousandths.
        let is_small = &found["unit"] == "k" && found["binary"].is_empty();
        let unit = if is_small { "k".to_owned() } else { found["unit"].to_uppercase() };
        format!("{}{unit}{}", &found["digits"], &found["binary"])
    };
    UNIT.replace_all(&line, unit).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_of_messages_are_restored() {
        let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 61M. Pod a was using 9k, request is 5Gi, has larger consumption of memory. Container api-1 was using 900Mi, request is 0, has larger consumption of memory. ";
        let rows = [
            message,
            "Usage of EmptyDir volume \"cache\" exceeds the limit \"10Gi\". ",
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ",
            "Container web exceeded its local ephemeral storage limit \"1Gi\". ",
        ];
        for text in rows {
            assert_eq!(without_capitals(text.to_uppercase()), text);
            assert_eq!(without_capitals(text.to_lowercase()), text);
            assert_eq!(without_capitals(text.to_owned()), text);
        }
    }
}
