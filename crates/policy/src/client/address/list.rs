//! The elements of a list in a header, from the last to the first.

/// Returns the elements between commas, from the last. Empty elements are not skipped, although RFC 9110,
/// 5.6.1 requires it: if the nearest proxy wrote an empty element, everything before it comes from the
/// client.
pub(super) fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Like [`elements`], but ignores commas within quotes.
///
/// The text of the nearest proxy is at the end and is well-formed. Reading from there, a quote that an
/// earlier sender left open cannot swallow it.
pub(super) fn quoted_elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let element = match last_comma(line).and_then(|at| line.split_at_checked(at)) {
            Some((before, element)) => {
                rest = Some(before);
                element.get(1..).unwrap_or_default()
            }
            None => {
                rest = None;
                line
            }
        };
        Some(element.trim_ascii())
    })
}

/// Returns the position of the last comma outside of quotes.
fn last_comma(line: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            b'"' if is_quoted => is_quoted = is_escaped(line, at),
            b'"' => is_quoted = true,
            b',' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns true if an odd number of backslashes precedes `at`.
fn is_escaped(line: &[u8], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    slashes.count() % 2 == 1
}
