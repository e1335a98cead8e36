//! `tidegate man`: the manual, made from the help of each command.

use super::cli::Cli;
use super::print;
use clap::builder::Resettable;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tidegate_control::failure::Failure;

/// The arguments of `tidegate man`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tidegate man | man -l -
  tidegate man ~/.local/share/man/man1 && man tidegate-serve

The Debian package installs all pages.")]
pub struct ManArgs {
    /// Existing folder for all pages: tidegate.1, and one for each subcommand such as
    /// tidegate-serve.1. Default: print the main page
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints the main page, or writes all pages into a folder.
///
/// # Errors
///
/// [`Failure::Runtime`] if a page cannot be written.
pub fn run(args: &ManArgs) -> Result<(), Failure> {
    // `help` would have a page for each command again.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match &args.dir {
        None => print::bytes(&page(command)?.1),
        Some(dir) => write_all(command, dir),
    }
}

/// Writes the pages of a command and of its subcommands.
fn write_all(command: Command, dir: &Path) -> Result<(), Failure> {
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_all(subcommand.clone(), dir)?;
    }
    let (name, text) = page(command)?;
    let path = dir.join(name);
    fs::write(&path, text)
        .map_err(|error| Failure::runtime(format!("cannot write {}: {error}", path.display())))
}

/// Returns the file name and the text of a page.
fn page(command: Command) -> Result<(String, Vec<u8>), Failure> {
    let notes = command.get_after_help().map(ToString::to_string);
    let page = Man::new(command.after_help(Resettable::Reset))
        .source(concat!("tidegate ", env!("CARGO_PKG_VERSION")))
        .manual("Tidegate Manual");
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| unwritable(&error))?;
    if let Some(notes) = notes {
        write_notes(&notes, &mut text).map_err(|error| unwritable(&error))?;
    }
    Ok((page.get_filename(), text))
}

/// Writes the notes and examples line by line: filled lines would join the commands.
fn write_notes(notes: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", ["NOTES"]);
    roff.control("nf", []);
    for line in notes.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(text)
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::runtime(format!("cannot write the page: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Cli, page, write_all};
    use clap::CommandFactory;
    use std::fs;

    #[test]
    fn each_command_that_help_lists_has_a_page() {
        let dir = std::env::temp_dir().join(format!("tidegate-man-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        write_all(command.clone(), &dir).unwrap();
        let has = |name: &str| dir.join(name).exists();
        for subcommand in command.get_subcommands() {
            let name = format!("tidegate-{}.1", subcommand.get_name());
            assert_eq!(has(&name), !subcommand.is_hide_set(), "{name}");
        }
        assert!(has("tidegate.1") && has("tidegate-import-nginx.1"));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn examples_keep_their_lines() {
        let mut command = Cli::command();
        command.build();
        let (name, text) = page(command).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(name, "tidegate.1");
        let notes = text.split_once(".SH NOTES\n.nf\n").unwrap().1;
        assert!(notes.starts_with("Examples:\n"), "{notes}");
        assert!(notes.ends_with("\n.fi\n"), "{notes}");
    }
}
