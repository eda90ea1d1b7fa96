//! `--no-FLAG`, which unsets a flag that a profile sets.

use clap::{Arg, ArgAction, Command};

/// Start of the option that unsets a flag, as in cargo and nextest.
const PREFIX: &str = "no-";

/// Returns the name of the option that unsets a flag, which is also its ID.
pub(super) fn negation(long: &str) -> String {
    format!("{PREFIX}{long}")
}

/// Adds `--no-FLAG` for every flag of the command and its subcommands. The last one of a flag and
/// its negation applies. Without a profile that sets the flag, its negation has no other effect.
pub(super) fn with_negations(mut command: Command) -> Command {
    let is_flag = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue);
    let flags: Vec<(String, String)> = command
        .get_arguments()
        .filter(is_flag)
        .filter_map(|arg| Some((arg.get_id().to_string(), negation(arg.get_long()?))))
        .collect();
    for (flag, negation) in flags {
        let id = negation.clone();
        let negation = Arg::new(id.clone()).long(negation).action(ArgAction::SetTrue).hide(true);
        command =
            command.arg(negation.overrides_with(flag.clone())).mut_arg(flag, |arg| arg.overrides_with(id));
    }
    command.mut_subcommands(with_negations)
}
