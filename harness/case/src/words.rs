//! Words of messages: counts with their nouns, and lists of names.

/// Returns `n` with its noun in the singular or plural: `1 case`, `0 cases`, `2 entries`.
pub fn count_noun(n: usize, noun: &str) -> String {
    if n == 1 {
        return format!("1 {noun}");
    }
    let ends_with = |ends: &[&str]| ends.iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(stem) if !ends_with(&["ay", "ey", "oy", "uy"]) => format!("{n} {stem}ies"),
        _ if ends_with(&["s", "x", "ch", "sh"]) => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}

/// Lists names, or `none`.
pub(crate) fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_the_count() {
        let rows = [
            (0, "pod", "0 pods"),
            (1, "pod", "1 pod"),
            (2, "known bug", "2 known bugs"),
            (3, "entry", "3 entries"),
            (2, "day", "2 days"),
            (2, "process", "2 processes"),
            (1, "batch", "1 batch"),
            (2, "batch", "2 batches"),
        ];
        for (n, noun, text) in rows {
            assert_eq!(count_noun(n, noun), text);
        }
    }
}
