//! Untrusted texts, neutralized for a terminal and for the log of a job.

use std::borrow::Cow;

/// Shows control characters of a text, such as `\u{1b}`: text from a cluster or from a file must
/// not move the cursor, set the clipboard or reverse the direction of what follows. Line feeds and
/// tabs are kept.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| match c {
        '\n' | '\t' => false,
        // The controls of bidirectional text.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Takes the effect of GitHub's workflow commands (`::set-output …`, `##[…]`) from a text that is
/// printed: an invisible space separates their first characters.
pub fn without_workflow_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| match line.trim_start().strip_prefix("::") {
        Some(rest) => format!("{}:\u{200b}:{rest}", &line[..line.len() - line.trim_start().len()]),
        None => line.to_owned(),
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    Cow::Owned(lines.join("\n").replace("##[", "##\u{200b}["))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_visible() {
        assert_eq!(visible("a\tb\nc é"), "a\tb\nc é");
        assert_eq!(
            visible("\u{1b}]52;c;cm0=\u{7} \r \u{9b}2J \u{202e}x"),
            r"\u{1b}]52;c;cm0=\u{7} \u{d} \u{9b}2J \u{202e}x"
        );
    }

    #[test]
    fn workflow_commands_have_no_effect() {
        let text = "a::b\n  ::set-output name=a::b\n::error::c ##[add-path]";
        let harmless = without_workflow_commands(text);
        assert!(harmless.lines().all(|line| !line.trim().starts_with("::")) && !harmless.contains("##["));
        assert_eq!(harmless.replace('\u{200b}', ""), text);
        assert!(matches!(without_workflow_commands("plain"), Cow::Borrowed(_)));
    }
}
