//! Text tables for people.

use crate::styles::{HEAD, paint};
use std::fmt::Write;

/// Rows of text in aligned columns: the first `numbers` columns to the left, the others, which hold
/// numbers, to the right.
#[derive(Debug)]
pub(crate) struct TextTable<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
    numbers: usize,
}

impl<const COLUMNS: usize> TextTable<COLUMNS> {
    pub(crate) fn new(head: [&str; COLUMNS], numbers: usize) -> Self {
        Self {
            rows: vec![head.map(str::to_owned)],
            numbers,
        }
    }

    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    /// Returns the table with a bold head, like [`show`](Self::show).
    pub(crate) fn styled(&self) -> String {
        let text = self.show();
        match text.split_once('\n') {
            Some((head, rest)) => format!("{}\n{rest}", paint(HEAD, head)),
            None => text,
        }
    }

    /// Returns the table, indented, with a line end after each row.
    pub(crate) fn show(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                line.push_str("  ");
                let _ = if column < self.numbers {
                    write!(line, "{cell:<width$}")
                } else {
                    write!(line, "{cell:>width$}")
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns a number with thousands separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a duration in its two largest units, or in milliseconds.
pub(crate) fn duration(micros: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let seconds = micros / 1_000_000;
    if seconds < 60 {
        return format!("{}.{:03} s", seconds, micros / 1_000 % 1_000);
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (name, length) in UNITS {
        if rest >= length {
            parts.push(format!("{} {name}", rest / length));
            rest %= length;
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(["limit", "asked"], 1);
        table.row(["per-ip".to_owned(), "7".to_owned()]);
        table.row(["ü".to_owned(), "1,000".to_owned()]);
        assert_eq!(
            table.show(),
            "  limit   asked\n  per-ip      7\n  ü       1,000\n"
        );
    }

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn durations_are_readable() {
        for (micros, text) in [
            (0, "0.000 s"),
            (1_234_567, "1.234 s"),
            (60_000_000, "1 min"),
            (3_661_000_000, "1 h 1 min"),
            (90_061_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(micros), text);
        }
    }
}
