//! The elements of a list in a header, from the last to the first.

/// The elements between commas, from the last. Empty ones are not passed over, though RFC 9110, 5.6.1
/// asks for it: where the nearest proxy had nothing to say, what stands before is the client's.
pub(super) fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// The same, where commas within quotes do not count.
///
/// What the nearest proxy wrote stands at the end and is sound. Reading from there, a quote that
/// somebody before it left open cannot swallow it.
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

/// Where the last comma stands that is not within quotes.
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

/// Whether an odd number of backslashes stands before `at`.
fn is_escaped(line: &[u8], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    slashes.count() % 2 == 1
}
