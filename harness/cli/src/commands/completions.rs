//! `evictlab completions`

use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;

/// Print the completion script of a shell
///
/// Write the script to the directory where the shell looks for completions, and open a new shell.
/// Repeat this after an update of evictlab.
///
/// These scripts complete commands and options. Scripts that also complete cases, suites, labels
/// and kubelets ask the program, and need no update: COMPLETE=bash evictlab prints them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab completions bash > ~/.local/share/bash-completion/completions/evictlab
  evictlab completions zsh > ~/.zfunc/_evictlab    # where ~/.zshrc has fpath+=~/.zfunc before compinit
  evictlab completions fish > ~/.config/fish/completions/evictlab.fish
  evictlab completions elvish >> ~/.config/elvish/rc.elv
  evictlab completions powershell >> $PROFILE
  source <(evictlab completions bash)              # in this shell only
  echo 'source <(COMPLETE=bash evictlab)' >> ~/.bashrc    # with cases and kubelets
  echo 'source <(COMPLETE=zsh evictlab)' >> ~/.zshrc
  echo 'COMPLETE=fish evictlab | source' >> ~/.config/fish/config.fish")]
pub(crate) struct Args {
    /// Shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args, mut evictlab: Command) -> Result<ExitCode, Failure> {
    let name = evictlab.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut evictlab, name, &mut script);
    print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
