//! Arguments that select what a command prints.

use std::io::{Stderr, stderr};

use evictlab_report::{
    ColorChoice, LiveTerminal, OutputFormat, OutputOptions, OutputPreferences, PlainLog, Report, StatusLine,
    TerminalCaps, Verbosity,
};

/// Amount of output, and colors.
#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print only failures and the totals
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print every step and measurement
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    color: ColorArgs,
}

/// Use of colors, in every command.
#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ColorArgs {
    /// Use of colors; the environment variables NO_COLOR and CLICOLOR_FORCE apply to auto
    #[arg(long, value_name = "WHEN", value_enum, global = true, default_value_t = ColorArg::Auto)]
    color: ColorArg,
}

impl ColorArgs {
    /// Returns the choice of colors.
    pub(crate) fn choice(&self) -> ColorChoice {
        match self.color {
            ColorArg::Auto => ColorChoice::Auto,
            ColorArg::Always => ColorChoice::Always,
            ColorArg::Never => ColorChoice::Never,
        }
    }
}

/// Amount of progress on standard error, and colors.
#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ProgressArgs {
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    color: ColorArgs,
}

impl ProgressArgs {
    /// Returns the progress on standard error: redrawn in place on a terminal.
    pub(crate) fn status_line(&self) -> StatusLine<Stderr> {
        let verbosity = if self.quiet { Verbosity::Quiet } else { Verbosity::Normal };
        StatusLine::new(stderr(), self.caps(), terminal_size::terminal_size, verbosity)
    }

    /// Returns the log of a run on standard error: live on a terminal.
    pub(crate) fn run_log(&self) -> Box<dyn Report> {
        let caps = self.caps();
        let verbosity = if self.quiet { Verbosity::Quiet } else { Verbosity::Normal };
        let options =
            OutputOptions { format: OutputFormat::Plain, verbosity, color: caps.color, hints: true };
        if caps.live && !self.quiet {
            Box::new(LiveTerminal::new(stderr(), terminal_size::terminal_size, options, None))
        } else {
            Box::new(PlainLog::new("terminal", stderr(), options, None))
        }
    }

    fn caps(&self) -> TerminalCaps {
        TerminalCaps::of_stderr(self.color.choice())
    }
}

/// Values of `--color`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ColorArg {
    Auto,
    Always,
    Never,
}

/// The format of a run on standard output.
#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatArgs {
    /// Format of standard output [default: live on a terminal, github in GitHub Actions, plain
    /// elsewhere]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<FormatArg>,
    /// Print the events of the run, one JSON object per line: same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Values of `--format`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum FormatArg {
    /// One line for each verdict
    Plain,
    /// The events of the run, one JSON object per line
    Json,
    /// Plain lines, with annotations and folded groups of GitHub Actions
    Github,
}

impl FormatArgs {
    /// Returns whether standard output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json || matches!(self.format, Some(FormatArg::Json))
    }
}

impl OutputArgs {
    /// The output of a command without a choice of formats.
    pub(crate) fn options(&self) -> OutputOptions {
        OutputOptions::of_stdout(self.preferences(None))
    }

    /// The output of a command with a choice of formats.
    pub(crate) fn options_as(&self, format: &FormatArgs) -> OutputOptions {
        let json = format.json.then_some(FormatArg::Json);
        let format = json.or(format.format).map(|format| match format {
            FormatArg::Plain => OutputFormat::Plain,
            FormatArg::Json => OutputFormat::Json,
            FormatArg::Github => OutputFormat::Github,
        });
        OutputOptions::of_stdout(self.preferences(format))
    }

    fn preferences(&self, format: Option<OutputFormat>) -> OutputPreferences {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        };
        OutputPreferences { format, verbosity, color: self.color.choice() }
    }
}
