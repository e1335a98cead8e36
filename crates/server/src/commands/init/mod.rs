//! `tidegate init`: writes a configuration from a few choices.
//!
//! | module | what it is |
//! |---|---|
//! | `choices` | the choices: flags, answers, and combinations that do not fit |
//! | `prompt` | questions at the terminal |
//! | `text` | the configuration |
//! | `next` | the next commands, and the settings of the proxy |

mod choices;
mod next;
mod prompt;
#[cfg(test)]
mod tests;
mod text;

pub use choices::{ChosenKey, ChosenProxy, DeploymentKind};

use super::print;
use choices::SetupChoices;
use clap::Args;
use prompt::TerminalPrompt;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tidegate_config::Config;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;

/// The arguments of `tidegate init`.
#[derive(Args, Debug)]
#[command(after_help = "\
Asks at a terminal for each choice that has no flag. With --yes, or without a
terminal, such a choice is its default.

Examples:
  tidegate init
  tidegate init --proxy nginx --limit '10/s burst 50' --yes
  tidegate init --run gateway --upstream http://127.0.0.1:9001 --yes
  tidegate init --store redis://127.0.0.1:6379 --key api-key --output a.yaml")]
pub struct InitArgs {
    /// Place of Tidegate. Default: service
    #[arg(long, value_name = "WHERE", value_enum)]
    pub run: Option<DeploymentKind>,
    /// Proxy that asks Tidegate about each request. Default: none
    #[arg(long, value_name = "PROXY", value_enum)]
    pub proxy: Option<ChosenProxy>,
    /// Upstream of the gateway. Default: `http://127.0.0.1:9001`
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Buckets: `memory`, or a Redis URL to share them between instances. Default: memory
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Rate, such as `100/min` or `10/s burst 50`. Default: 100/min
    #[arg(long, value_name = "RATE")]
    pub limit: Option<String>,
    /// Identity that the limit counts by. Default: ip
    #[arg(long, value_name = "KEY", value_enum)]
    pub key: Option<ChosenKey>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "tidegate.yaml")]
    pub output: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// Writes a configuration, and prints the next commands.
///
/// # Errors
///
/// [`Failure::Input`] if a choice is invalid, or if the file exists and `--force` is not set;
/// [`Failure::Runtime`] if the file cannot be written. Nothing is written then.
pub fn run(args: &InitArgs) -> Result<(), Failure> {
    if !args.force && args.output.exists() {
        return Err(exists(&args.output));
    }
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let choices = if is_terminal && !args.yes {
        let prompt = TerminalPrompt::new(io::stdin().lock(), io::stderr().lock());
        SetupChoices::ask(args, prompt)?
    } else {
        SetupChoices::of_flags(args)?
    };
    let text = text::configuration(&choices, &args.output);
    let name = args.output.display().to_string();
    Config::parse(&text, &name, &FlagEnvironment::new()).map_err(Failure::input)?;
    write(args, &text)?;
    print::styled_line(next::steps(&choices, &args.output).trim_end())
}

fn write(args: &InitArgs, text: &str) -> Result<(), Failure> {
    let path = &args.output;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if !args.force {
        // It may have appeared since.
        options.create_new(true);
    }
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::runtime(format!("cannot write {}: {error}", path.display())),
    })
}

fn exists(path: &Path) -> Failure {
    Failure::input(format!(
        "{} exists\n   help: set --output FILE to write another file, or --force to replace this one",
        path.display()
    ))
}
