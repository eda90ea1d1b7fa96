//! Messages on standard error, and the choice of colors.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;

use evictlab_report::text::{visible, without_workflow_commands};
use evictlab_report::{ColorChoice, Style, TerminalCaps};

/// The choice of colors by `--color`. It is made once: a failure is reported where the arguments
/// of its command are not known.
static COLORS: OnceLock<ColorChoice> = OnceLock::new();

/// Labels at the beginning of a line on standard error.
const LABELS: [(&str, Style); 3] =
    [("error:", Style::Red), ("warning:", Style::Yellow), ("help:", Style::Cyan)];

/// Sets the choice of colors, before the first output.
pub(crate) fn choose_colors(choice: ColorChoice) {
    COLORS.get_or_init(|| choice);
}

/// Returns the choice of colors. The environment decides before the arguments are parsed.
pub(crate) fn color_choice() -> ColorChoice {
    COLORS.get().copied().unwrap_or_default()
}

/// Writes a line to standard error, with visible control characters. Ignores errors: a closed
/// terminal must not stop a run.
pub(crate) fn print_stderr(text: impl Display) {
    let text = text.to_string();
    let text = visible(&text);
    let text = color_labels(&without_workflow_commands(&text), TerminalCaps::of_stderr(color_choice()).color);
    let _ignored = writeln!(io::stderr().lock(), "{text}");
}

/// Colors the labels of errors, warnings and help.
fn color_labels(text: &str, color: bool) -> String {
    let colored = |line: &str| match LABELS.iter().find(|(label, _)| line.starts_with(label)) {
        Some((label, style)) => style.on(label, color) + &line[label.len()..],
        None => line.to_owned(),
    };
    text.split('\n').map(colored).collect::<Vec<_>>().join("\n")
}

/// Writes a warning to standard error, as [`print_stderr`] does.
pub(crate) fn print_warning(text: &str) {
    print_stderr(format!("warning: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_begin_a_line() {
        let text = "warning: no error: here\nhelp: none\n  help: none";
        assert_eq!(color_labels(text, false), text);
        assert_eq!(
            color_labels(text, true),
            "\x1b[33mwarning:\x1b[0m no error: here\n\x1b[36mhelp:\x1b[0m none\n  help: none"
        );
    }
}
