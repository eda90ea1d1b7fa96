//! Format and amount of the output on standard output.

use std::env;
use std::io::{self, IsTerminal};

use crate::terminal_caps::{ColorChoice, TerminalCaps};

/// Format of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Results above the running cases, which are redrawn in place.
    Live,
    /// Lines of text.
    Plain,
    /// The events of the run, one JSON object per line, as in `events.jsonl`.
    Json,
    /// Lines of text with GitHub's workflow commands: groups and annotations.
    Github,
}

/// Amount of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Failures and the totals.
    Quiet,
    /// One line for each verdict, and the summary.
    #[default]
    Normal,
    /// Every step and measurement, too.
    Verbose,
}

/// Preferences for standard output.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutputPreferences {
    /// The format; `None` selects one by the environment.
    pub format: Option<OutputFormat>,
    /// The amount.
    pub verbosity: Verbosity,
    /// Colors.
    pub color: ColorChoice,
}

/// Output on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    /// The format.
    pub format: OutputFormat,
    /// The amount.
    pub verbosity: Verbosity,
    /// True if colors are used.
    pub color: bool,
    /// True if the summary ends with the run directory and the next commands.
    pub hints: bool,
}

impl OutputOptions {
    /// The output for standard output and the environment of this process.
    pub fn of_stdout(preferences: OutputPreferences) -> Self {
        Self::of(preferences, io::stdout().is_terminal(), |name| env::var(name).ok())
    }

    /// The output for a stream and environment variables. Without a stated format it is live on a
    /// terminal, [`OutputFormat::Github`] in GitHub Actions, and plain elsewhere. Quiet and verbose
    /// output are never live.
    pub fn of(
        preferences: OutputPreferences,
        is_terminal: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let OutputPreferences { format, verbosity, color } = preferences;
        let caps = TerminalCaps::of(is_terminal, &variable).with(color);
        let detected = match variable("GITHUB_ACTIONS") {
            Some(_) => OutputFormat::Github,
            None if caps.live && verbosity == Verbosity::Normal => OutputFormat::Live,
            None => OutputFormat::Plain,
        };
        Self { format: format.unwrap_or(detected), verbosity, color: caps.color, hints: true }
    }

    /// The output of a run that is a part of a search: its summary ends with the totals.
    #[must_use]
    pub fn without_hints(self) -> Self {
        Self { hints: false, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_and_color_follow_preferences_and_environment() {
        use OutputFormat::{Github, Json, Live, Plain};
        let quiet = OutputPreferences { verbosity: Verbosity::Quiet, ..Default::default() };
        let verbose = OutputPreferences { verbosity: Verbosity::Verbose, ..Default::default() };
        let format = |format| OutputPreferences { format: Some(format), ..Default::default() };
        let color = |color| OutputPreferences { color, ..Default::default() };
        let default = OutputPreferences::default();
        let github = &[("GITHUB_ACTIONS", "true")][..];
        for (preferences, is_terminal, variables, expected) in [
            (default, true, &[][..], (Live, true)),
            (default, false, &[], (Plain, false)),
            (default, false, github, (Github, false)),
            (default, true, &[("TERM", "dumb")], (Plain, false)),
            (quiet, true, &[], (Plain, true)),
            (verbose, true, &[], (Plain, true)),
            (format(Plain), true, github, (Plain, true)),
            (format(Json), false, &[], (Json, false)),
            (format(Github), false, &[], (Github, false)),
            (color(ColorChoice::Always), false, &[("NO_COLOR", "1")], (Plain, true)),
            (color(ColorChoice::Never), true, &[("CLICOLOR_FORCE", "1")], (Live, false)),
        ] {
            let get = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let options = OutputOptions::of(preferences, is_terminal, get);
            assert_eq!((options.format, options.color), expected, "{preferences:?} {variables:?}");
        }
    }
}
