//! Arguments that select what a command prints.

use evictlab_report::{ColourChoice, OutputFormat, OutputOptions, OutputPreferences, Verbosity};

/// Amount of output, and colours.
#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print only failures and the totals
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print every step and measurement
    #[arg(short, long)]
    verbose: bool,
    /// Use of colours; the environment variables NO_COLOR and CLICOLOR_FORCE apply to auto
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    color: ColorArg,
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
    /// Format of standard output [default: a live table on a terminal, github in GitHub Actions,
    /// plain elsewhere]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<FormatArg>,
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

impl OutputArgs {
    /// The output of a command without a choice of formats.
    pub(crate) fn options(&self) -> OutputOptions {
        OutputOptions::of_stdout(self.preferences(None))
    }

    /// The output of a command with a choice of formats.
    pub(crate) fn options_as(&self, format: &FormatArgs) -> OutputOptions {
        let format = format.format.map(|format| match format {
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
        let colour = match self.color {
            ColorArg::Auto => ColourChoice::Auto,
            ColorArg::Always => ColourChoice::Always,
            ColorArg::Never => ColourChoice::Never,
        };
        OutputPreferences { format, verbosity, colour }
    }
}
