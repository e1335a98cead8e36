//! The reference page of the commands, generated from the command line parser.

use clap::{Arg, ArgAction, Command, CommandFactory};
use std::fmt::Write;
use std::fs;
use tidegate_server::commands::cli::Cli;
use tidegate_testkit::golden;

/// Returns the commands in the help by their full names: `tidegate`, `tidegate serve` and so on.
fn commands() -> Vec<(String, Command)> {
    let mut root = Cli::command();
    root.build();
    let mut found = Vec::new();
    collect(&root, "", &mut found);
    found
}

fn collect(command: &Command, above: &str, found: &mut Vec<(String, Command)>) {
    let name = format!("{above} {}", command.get_name());
    let name = name.trim();
    found.push((name.to_owned(), command.clone()));
    let below = command.get_subcommands();
    for command in below.filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        collect(command, name, found);
    }
}

/// Returns the usage, the table of arguments and the examples of a command.
fn write(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut blocks = vec![format!("```text\n{usage}\n```")];
    let rows: Vec<String> = arguments(command).map(row).collect();
    if !rows.is_empty() {
        blocks.push(table(&rows));
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        blocks.push(format!("```text\n{}\n```", after.to_string().trim_end()));
    }
    blocks.join("\n\n")
}

fn table(rows: &[String]) -> String {
    let head = "| argument | variable | default | meaning |\n|---|---|---|---|";
    format!("{head}\n{}", rows.join("\n"))
}

/// Returns the arguments in the help, without those of all commands.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let all = command.get_arguments().filter(|arg| !arg.is_hide_set());
    all.filter(|arg| !arg.is_global_set() && !is_help(arg))
}

fn is_help(arg: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(arg.get_action(), Help | HelpLong | HelpShort | Version)
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let help = help.map_or_else(String::new, |help| help.to_string().replace('\n', " "));
    let (meaning, default) = match help.split_once("Default: ") {
        Some((meaning, default)) => (meaning.trim_end(), quoted(default)),
        None => (help.as_str(), defaults(arg)),
    };
    let default = if arg.is_required_set() {
        "**required**"
    } else {
        &default
    };
    let variable = arg.get_env().map(|name| format!("`{}`", name.display()));
    let cells = [
        format!("`{}`", flag(arg)),
        variable.unwrap_or_default(),
        default.trim_end_matches('.').to_owned(),
        format!("{}{}", meaning.trim_end_matches('.'), words(arg)),
    ];
    format!(
        "| {} |",
        cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
    )
}

/// Returns a default in backticks if it is a single word.
fn quoted(default: &str) -> String {
    let is_word = !default.contains([' ', '`']);
    if is_word {
        format!("`{default}`")
    } else {
        default.to_owned()
    }
}

fn defaults(arg: &Arg) -> String {
    let values = arg.get_default_values().iter();
    let values = values.filter(|_| arg.get_action().takes_values());
    let values = values.map(|value| format!("`{}`", value.display()));
    values.collect::<Vec<_>>().join(", ")
}

/// Returns an argument as usage shows it: `-n, --count <N>`, `[FILE]`.
fn flag(arg: &Arg) -> String {
    let value = if arg.get_action().takes_values() {
        arg.to_string()
    } else {
        String::new()
    };
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    match (short, long) {
        (None, None) => value,
        (Some(short), Some(_)) if !value.is_empty() => format!("{short}, {value}"),
        (Some(short), Some(long)) => format!("{short}, {long}"),
        (one, other) => {
            let name = one.or(other).unwrap();
            if value.is_empty() { name } else { value }
        }
    }
}

/// Returns the possible values of an argument.
fn words(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let values = values
        .iter()
        .filter(|it| !it.is_hide_set() && arg.get_action().takes_values());
    let values: Vec<String> = values.map(|it| format!("`{}`", it.get_name())).collect();
    match values.as_slice() {
        [] => String::new(),
        values => format!(": {}", values.join(", ")),
    }
}

#[test]
fn the_page_of_the_commands_has_every_command_and_argument() {
    let page = golden::docs("reference/cli.md");
    let text = fs::read_to_string(&page).unwrap();
    let parts: Vec<&str> = golden::parts(&text).collect();
    assert!(parts.contains(&"commands") && parts.contains(&"other commands"));
    assert!(parts.contains(&"options of all commands"));
    let commands = commands();
    assert!(commands.len() > 10);
    golden::compare_parts(&page, |part| match part {
        "commands" => overview(&commands),
        "options of all commands" => {
            let all = commands[0].1.get_arguments();
            table(
                &all.filter(|arg| arg.is_global_set())
                    .map(row)
                    .collect::<Vec<_>>(),
            )
        }
        "other commands" => {
            // The program itself is `serve`, which has its own part.
            let others = commands.iter().skip(1);
            let others = others.filter(|(name, _)| !parts.contains(&name.as_str()));
            others.map(section).collect::<Vec<_>>().join("\n\n")
        }
        name => write(&commands.iter().find(|(it, _)| it == name).unwrap().1),
    });
}

/// Returns a command with its heading and its effect.
fn section((name, command): &(String, Command)) -> String {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let about = about.trim_end_matches('.');
    format!("## `{name}`\n\n{about}.\n\n{}", write(command))
}

/// Returns a table of all commands, each with a link to its section.
fn overview(commands: &[(String, Command)]) -> String {
    let mut text = String::from("| command | effect |\n|---|---|\n");
    for (name, command) in commands.iter().skip(1) {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let anchor = golden::anchor(name);
        writeln!(text, "| [`{name}`](#{anchor}) | {about} |").unwrap();
    }
    text
}
