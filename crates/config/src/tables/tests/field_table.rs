//! A table of fields in Markdown.

use super::pages::Pages;
use crate::language::table::{FieldRow, FieldTable, Shape};
use crate::language::words::one_of;
use std::fmt::Write;

/// Returns the table of fields for a page.
pub(super) fn write(table: &FieldTable, page: &str, pages: &Pages) -> String {
    let mut text = String::from("| field | value | default | meaning |\n|---|---|---|---|\n");
    for field in table.fields {
        let (meaning, default) = split(field.about);
        let default = match default {
            _ if field.required => "**required**".to_owned(),
            Some(default) => match literal(default) {
                Some(value) => format!("`{value}`"),
                None => default.to_owned(),
            },
            None => String::new(),
        };
        let name = format!("`{}`", field.name);
        let name = match pages.link_to_field(page, table, field.name) {
            Some(link) => format!("[{name}]({link})"),
            None => name,
        };
        let value = Values { page, pages }.of(field);
        let cells = [&name, &value, &default, meaning.trim_end_matches('.')];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        writeln!(text, "| {} |", cells.join(" | ")).unwrap();
    }
    if !table.exactly_one.is_empty() {
        let choice = one_of(table.exactly_one);
        writeln!(
            text,
            "\nSet exactly one of {}.",
            choice.replace(" or ", " and ")
        )
        .unwrap();
    }
    text
}

/// Splits a description into the meaning and the default, which is the last sentence.
pub(super) fn split(about: &str) -> (&str, Option<&str>) {
    match about.split_once("Default: ") {
        Some((meaning, default)) => (meaning.trim_end(), Some(default.trim_end_matches('.'))),
        None => (about, None),
    }
}

/// Returns the value of a default that is one, such as `20ms`; not of one in words, such as "the amount".
pub(super) fn literal(default: &str) -> Option<&str> {
    if let Some(quoted) = default.strip_prefix('`') {
        return quoted.strip_suffix('`').filter(|it| !it.contains('`'));
    }
    let is_value = default.starts_with(|it: char| it.is_ascii_digit())
        || ["true", "false", "[]"].contains(&default);
    let is_one = !default.contains([' ', ',', ';']);
    (is_value && is_one).then_some(default)
}

/// Writes the values that a field accepts.
struct Values<'a> {
    page: &'a str,
    pages: &'a Pages,
}

impl Values<'_> {
    fn of(&self, field: &FieldRow) -> String {
        self.shape(&field.shape)
    }

    fn shape(&self, shape: &Shape) -> String {
        match shape {
            Shape::Text(example) => kind(example),
            Shape::Word(words) => one_of(&words.list()),
            Shape::Flag => "`true` or `false`".to_owned(),
            Shape::Whole(0, u64::MAX) => "whole number".to_owned(),
            Shape::Whole(from, u64::MAX) => format!("whole number from {from}"),
            Shape::Whole(from, to) => format!("{from} to {}", grouped(*to)),
            Shape::Share => "number above 0 and up to 1".to_owned(),
            Shape::List(Shape::Map(table)) => format!("list of [maps]({})", self.link(table)),
            Shape::List(item) => format!("list; each {}", self.shape(item)),
            Shape::Either(shapes) => self.either(shapes),
            Shape::Pairs => "texts by name".to_owned(),
            Shape::Tree => "a map with settings".to_owned(),
            Shape::Named(value) => format!("by name: {}", self.shape(value)),
            Shape::Map(table) => format!("[map]({})", self.link(table)),
        }
    }

    fn either(&self, shapes: &[Shape]) -> String {
        let mut parts: Vec<String> = Vec::new();
        for shape in shapes {
            let part = match shape {
                Shape::List(item) if parts.last() == Some(&self.shape(item)) => {
                    "a list of these".to_owned()
                }
                // Words may repeat the flag, as `true` and `false` next to `auto`.
                Shape::Flag => continue,
                other => self.shape(other),
            };
            parts.push(part);
        }
        let is_nested = parts.iter().any(|part| part.contains(';'));
        parts.join(if is_nested { "; or " } else { ", or " })
    }

    fn link(&self, table: &FieldTable) -> String {
        self.pages.link_to_table(self.page, table)
    }
}

/// Returns the kind of text that `example` is: a duration, a file, or text with this example.
fn kind(example: &str) -> String {
    let unit = example.trim_start_matches(|it: char| it.is_ascii_digit());
    let has_number = unit.len() < example.len();
    let known = match unit {
        _ if ["/etc/", "/run/", "/var/"]
            .iter()
            .any(|it| example.starts_with(it)) =>
        {
            "path of a file"
        }
        _ if example.contains("://") => "URL",
        "" if example.is_empty() => "text",
        "ms" | "s" | "m" | "min" | "h" | "d" if has_number => "duration",
        "KiB" | "MiB" if has_number => "size",
        "%" if has_number => "percentage",
        _ if example.starts_with("${") => "secret",
        _ if example.starts_with("127.0.0.1:") => "address and port",
        _ => return format!("text, such as `{example}`"),
    };
    known.to_owned()
}

/// Returns a number with commas between groups of three digits, from 10,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left.is_multiple_of(3) && digits.len() > 4 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
