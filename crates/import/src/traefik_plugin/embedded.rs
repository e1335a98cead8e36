//! A document within a setting, extracted so that its errors have positions in the file.

use crate::SourceFile;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::TextSpan;

/// Returns the text of a setting as a document. Blank lines and indentation before it keep its lines
/// and columns those of the file.
pub(super) fn document(file: &SourceFile, value: &ConfigValue<'_>, text: &str) -> SourceFile {
    let above = match value.node.place {
        TextSpan::File { line, .. } => line.saturating_sub(1),
        TextSpan::Variable(_) => 0,
    };
    let indented = value.key.and_then(|key| block(&file.text, key.place));
    let indented = indented.filter(|block| letters(block).eq(letters(text)));
    SourceFile {
        name: file.name.clone(),
        text: indented.unwrap_or_else(|| format!("{}{text}", "\n".repeat(above))),
    }
}

/// Returns the lines below a key that are indented more than the key, preceded by blank lines in place
/// of everything above.
fn block(text: &str, key: TextSpan) -> Option<String> {
    let TextSpan::File { line, .. } = key else {
        return None;
    };
    let mut lines = text.lines();
    let indent = indent_of(lines.nth(line.checked_sub(1)?)?);
    let mut block = "\n".repeat(line);
    for line in lines {
        if !line.trim().is_empty() && indent_of(line) <= indent {
            break;
        }
        block.push_str(line);
        block.push('\n');
    }
    Some(block)
}

fn indent_of(line: &str) -> usize {
    line.len()
        .saturating_sub(line.trim_start_matches(' ').len())
}

/// Returns all characters except whitespace, to compare texts with different layouts.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !letter.is_whitespace())
}
