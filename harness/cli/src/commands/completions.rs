//! `evictlab completions`

use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;

/// Print a script by which a shell completes commands and options
///
/// Put it where the shell looks for completions, and open a new shell. After an update of evictlab, do so again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab completions bash > ~/.local/share/bash-completion/completions/evictlab
  evictlab completions zsh > ~/.zfunc/_evictlab    # where ~/.zshrc has fpath+=~/.zfunc before compinit
  evictlab completions fish > ~/.config/fish/completions/evictlab.fish
  evictlab completions elvish >> ~/.config/elvish/rc.elv
  evictlab completions powershell >> $PROFILE
  source <(evictlab completions bash)              # in this shell only")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args, mut evictlab: Command) -> Result<ExitCode, Failure> {
    let name = evictlab.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut evictlab, name, &mut script);
    print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
