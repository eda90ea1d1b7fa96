//! Capabilities of an output stream and preferences of its user.

use std::env;
use std::io::{self, IsTerminal};

/// Use of colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal, unless the environment states otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Capabilities of an output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalCaps {
    /// Lines can be redrawn: the stream is a terminal that is not dumb.
    pub live: bool,
    /// Colors are used: lines can be redrawn or `CLICOLOR_FORCE` is set, and `NO_COLOR` is not
    /// set.
    pub color: bool,
}

impl TerminalCaps {
    /// Capabilities of standard output, from the environment and the choice of colors.
    pub fn of_stdout(choice: ColorChoice) -> Self {
        Self::of(io::stdout().is_terminal(), |name| env::var(name).ok()).with(choice)
    }

    /// Capabilities of standard error, from the environment and the choice of colors.
    pub fn of_stderr(choice: ColorChoice) -> Self {
        Self::of(io::stderr().is_terminal(), |name| env::var(name).ok()).with(choice)
    }

    /// Applies a choice of colors.
    pub(crate) fn with(self, choice: ColorChoice) -> Self {
        let color = match choice {
            ColorChoice::Auto => self.color,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self { color, ..self }
    }

    /// Capabilities of an output stream, from environment variables: <https://no-color.org>,
    /// <https://bixense.com/clicolors>.
    pub fn of(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).is_some_and(|value: String| !value.is_empty());
        let live = is_terminal && variable("TERM").is_none_or(|term| term != "dumb");
        let forced = set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE").as_deref() != Some("0");
        let unwanted = variable("CLICOLOR").as_deref() == Some("0");
        Self { live, color: !set("NO_COLOR") && (forced || (live && !unwanted)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_the_environment() {
        for (is_terminal, variables, live, color) in [
            (true, &[][..], true, true),
            (false, &[], false, false),
            (true, &[("TERM", "xterm")], true, true),
            (true, &[("TERM", "dumb")], false, false),
            (true, &[("NO_COLOR", "1")], true, false),
            (true, &[("NO_COLOR", "")], true, true),
            (true, &[("CLICOLOR", "0")], true, false),
            (false, &[("CLICOLOR_FORCE", "1")], false, true),
            (false, &[("CLICOLOR_FORCE", "0")], false, false),
            (true, &[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], false, true),
            (true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true, false),
        ] {
            let get = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(
                TerminalCaps::of(is_terminal, get),
                TerminalCaps { live, color },
                "{is_terminal} {variables:?}"
            );
        }
    }
}
