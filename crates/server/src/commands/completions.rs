//! `tidegate completions`.

use super::cli::Cli;
use super::print;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use tidegate_control::failure::Failure;

/// The arguments of `tidegate completions`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tidegate completions bash > /etc/bash_completion.d/tidegate
  tidegate completions zsh > ~/.zfunc/_tidegate      (with ~/.zfunc in fpath)
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish

The Debian package installs those of bash, zsh and fish.")]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the completion script of a shell.
///
/// # Errors
///
/// [`Failure::Runtime`] if it cannot be printed.
pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tidegate", &mut script);
    print::bytes(&script)
}
